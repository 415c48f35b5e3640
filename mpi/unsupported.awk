# Makes C from unsupported.list: one function a name that reports itself (abi.c: dz_unsupported), MPI_ weak over PMPI_.
# Names without a PMPI_ twin stand there with their class:  NAME alone
# Handle conversions return a null pointer.
BEGIN {
    print "/* Made from unsupported.list by unsupported.awk. */"
    print "#include <stddef.h>"
    print "int dz_unsupported(const char *call);"
    print "#pragma GCC visibility push(default)"
}
/^#/ || NF == 0 { next }
{
    name = $1
    strong = $2 == "alone" ? name : "P" name
    if (name ~ /_f2c$/)
        printf "void *%s(void);\nvoid *%s(void)\n{\n    dz_unsupported(\"%s\");\n    return NULL;\n}\n", strong, strong, name
    else
        printf "int %s(void);\nint %s(void)\n{\n    return dz_unsupported(\"%s\");\n}\n", strong, strong, name
    if (strong != name)
        printf "extern __typeof__(%s) %s __attribute__((weak, alias(\"%s\")));\n", strong, name, strong
}
