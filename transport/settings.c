/* settings.c - what the table of boot.h is made of, at run time: defaults, the environment, checks, a listing.
 *
 * dz_set holds the defaults before anything is read, so that parts which are tested alone work. A number's range stands
 * in its help text as "(LOW to HIGH)", where people read it, and is checked from there; without one it is not
 * negative, unless its default is. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/boot.h"

extern char **environ;

#define PREFIX "DENIZEN_"

#define DEFAULT(field, NAME, def, help) .field = (def),
struct dz_settings dz_set = {DZ_SETTINGS(DEFAULT, DEFAULT)};
#undef DEFAULT

struct row {
    const char *name, *help;
    long *number; /* or */
    const char **text;
    long number_default;
    const char *text_default;
};

#define INT_ROW(field, NAME, def, help) {PREFIX #NAME, help, &dz_set.field, NULL, def, NULL},
#define STR_ROW(field, NAME, def, help) {PREFIX #NAME, help, NULL, &dz_set.field, 0, def},
static const struct row rows[] = {DZ_SETTINGS(INT_ROW, STR_ROW)};
#undef INT_ROW
#undef STR_ROW
enum { ROWS = sizeof rows / sizeof *rows };

static char unknown[256];

static void range_of(const struct row *row, long *low, long *high)
{
    *low = row->number_default < 0 ? row->number_default : 0;
    *high = INT_MAX;
    for (const char *p = row->help; (p = strchr(p, '(')); p++) {
        long a, b;
        char end;
        if (sscanf(p, "(%ld to %ld%c", &a, &b, &end) == 3 && end == ')') {
            *low = a;
            *high = b;
            return;
        }
    }
}

static int load_number(const struct row *row, const char *value)
{
    long low, high;
    range_of(row, &low, &high);
    char *end;
    errno = 0;
    long n = strtol(value, &end, 10);
    if (end == value || *end || errno || n < low || n > high) {
        snprintf(dz_boot_error, sizeof dz_boot_error, "%s='%.64s' is not a whole number from %ld to %ld", row->name, value,
                 low, high);
        return -EINVAL;
    }
    *row->number = n;
    return 0;
}

static int load_text(const struct row *row, const char *value)
{
    /* kept: the program may change its environment */
    char *copy = strdup(value);
    if (!copy) {
        snprintf(dz_boot_error, sizeof dz_boot_error, "%s: out of memory", row->name);
        return -ENOMEM;
    }
    if (*row->text != row->text_default)
        free((char *)*row->text);
    *row->text = copy;
    return 0;
}

static void note_unknown(const char *entry)
{
    size_t n = strcspn(entry, "="), used = strlen(unknown);
    for (int i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == n && !memcmp(rows[i].name, entry, n))
            return;
    snprintf(unknown + used, sizeof unknown - used, "%s%.*s", used ? ", " : "", (int)n, entry);
}

int dz_settings_load(void)
{
    for (int i = 0; i < ROWS; i++) {
        const char *value = getenv(rows[i].name);
        if (!value || !*value)
            continue;
        int rc = rows[i].number ? load_number(&rows[i], value) : load_text(&rows[i], value);
        if (rc)
            return rc;
    }
    unknown[0] = 0;
    for (char **e = environ; e && *e; e++)
        if (!strncmp(*e, PREFIX, sizeof PREFIX - 1))
            note_unknown(*e);
    return 0;
}

const char *dz_settings_unknown(void)
{
    return unknown[0] ? unknown : NULL;
}

static const char *show(const struct row *row, bool values, char *room, size_t bytes)
{
    if (row->text) {
        const char *s = values ? *row->text : row->text_default;
        return *s ? s : "-";
    }
    snprintf(room, bytes, "%ld", values ? *row->number : row->number_default);
    return room;
}

/* Columns stand under each other for people, with bars between them for Markdown. */
void dz_settings_print(void *stdio_file, bool values)
{
    FILE *f = stdio_file;
    char room[32];
    int w1 = (int)strlen("variable"), w2 = (int)strlen(values ? "value" : "default"), w;
    for (int i = 0; i < ROWS; i++) {
        if ((w = (int)strlen(rows[i].name)) > w1)
            w1 = w;
        if ((w = (int)strlen(show(&rows[i], values, room, sizeof room))) > w2)
            w2 = w;
    }
    fprintf(f, "| %-*s | %-*s | meaning |\n| %.*s | %.*s | --- |\n", w1, "variable", w2, values ? "value" : "default", w1,
            "----------------------------------------------------------------", w2,
            "----------------------------------------------------------------");
    for (int i = 0; i < ROWS; i++)
        fprintf(f, "| %-*s | %-*s | %s |\n", w1, rows[i].name, w2, show(&rows[i], values, room, sizeof room), rows[i].help);
}
