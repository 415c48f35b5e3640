/* settings.c - the DENIZEN_* variables: defaults, numbers and their ranges, texts, names that mean nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/boot.h"

static int failures;

static void expect(bool ok, const char *what)
{
    if (!ok) {
        printf("FAIL: %s (error text: '%s', unknown: '%s')\n", what, dz_boot_error,
               dz_settings_unknown() ? dz_settings_unknown() : "");
        failures++;
    }
}

/* Loads with one variable set; what else is in the environment stays away. */
static int load_with(const char *name, const char *value)
{
    clearenv();
    setenv(name, value, 1);
    dz_boot_error[0] = 0;
    return dz_settings_load();
}

static void refused(const char *name, const char *value)
{
    expect(load_with(name, value) == -EINVAL, "a bad value is refused");
    expect(strstr(dz_boot_error, name) && strstr(dz_boot_error, value), "the text names variable and value");
}

static void listing(void)
{
    static const char *const names[] = {
#define ROW(field, NAME, def, help) "DENIZEN_" #NAME,
        DZ_SETTINGS(ROW, ROW)
#undef ROW
    };
    for (int values = 0; values < 2; values++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *f = open_memstream(&text, &bytes);
        dz_settings_print(f, values);
        fclose(f);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            expect(strstr(text, names[i]), names[i]);
        expect(!!strstr(text, "| 4321") == (values == 1), "the listing shows the value, or the default");
        free(text);
    }
}

int main(void)
{
    long ring = dz_set.slot_ring, spin = dz_set.spin;
    expect(ring == 16 && spin == -1 && !strcmp(dz_set.transport, "auto"), "defaults stand before anything is read");
    clearenv();
    expect(dz_settings_load() == 0 && dz_set.slot_ring == ring && !dz_settings_unknown(), "an empty environment");

    expect(load_with("DENIZEN_SLOT_RING", "64") == 0 && dz_set.slot_ring == 64, "the upper end of a range");
    expect(load_with("DENIZEN_SLOT_RING", "4") == 0 && dz_set.slot_ring == 4, "the lower end of a range");
    refused("DENIZEN_SLOT_RING", "65");
    refused("DENIZEN_SLOT_RING", "3");
    refused("DENIZEN_SLOT_RING", "8x");
    refused("DENIZEN_SLOT_RING", "eight");
    refused("DENIZEN_EAGER", "-1");
    refused("DENIZEN_EAGER", "99999999999999999999");
    refused("DENIZEN_SPIN", "-2");
    expect(load_with("DENIZEN_SPIN", "-1") == 0 && dz_set.spin == -1, "a negative value where the default is one");
    expect(load_with("DENIZEN_SPIN", "4321") == 0 && dz_set.spin == 4321, "a plain number");
    expect(load_with("DENIZEN_SPIN", "") == 0 && dz_set.spin == 4321, "an empty value is none");
    listing();

    expect(load_with("DENIZEN_TRANSPORT", "self") == 0, "a text");
    setenv("DENIZEN_TRANSPORT", "shm!", 1);
    expect(!strcmp(dz_set.transport, "self"), "a text is kept when the environment changes");

    expect(load_with("DENIZEN_EAGERNESS", "1") == 0, "an unknown name is no error");
    expect(dz_settings_unknown() && !strcmp(dz_settings_unknown(), "DENIZEN_EAGERNESS"), "an unknown name is told");
    setenv("DENIZEN_X", "1", 1);
    setenv("DENIZENS", "1", 1);
    expect(dz_settings_load() == 0 && strstr(dz_settings_unknown(), "DENIZEN_X") && !strstr(dz_settings_unknown(), "ENS,") &&
               !strstr(dz_settings_unknown(), "DENIZENS"), "all unknown names are told, and no others");
    expect(load_with("DENIZEN_CHUNK", "8192") == 0 && !dz_settings_unknown(), "known names are not");
    return failures != 0;
}
