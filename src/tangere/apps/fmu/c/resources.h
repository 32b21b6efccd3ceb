/* Start values of this arm: resources/parameters.txt beside the binary that all arms share. */

#define RESOURCE_MAX 65536 /* bytes; the longest file has some 15 kB */

static int hexadecimal(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* the path that a URI of FMI names: file:///path, file:/path, file://localhost/path, or a plain path; 0 if too long */
static int tg_path(const char *uri, char *path, size_t size)
{
    size_t n = 0;
    if (strncmp(uri, "file:", 5) == 0) {
        uri += 5;
        if (strncmp(uri, "//", 2) == 0) {
            uri += 2;
            while (*uri && *uri != '/')
                uri++; /* the host, mostly empty */
        }
        if (uri[0] == '/' && uri[1] && uri[2] == ':')
            uri++; /* /C:/folder is C:/folder */
    }
    for (; *uri; uri++) {
        int high, low;
        char c = *uri;
        if (c == '%' && (high = hexadecimal(uri[1])) >= 0 && (low = hexadecimal(uri[2])) >= 0) {
            c = (char)(16 * high + low);
            uri += 2;
        }
        if (n + 1 >= size || !c)
            return 0;
        path[n++] = c;
    }
    while (n > 0 && (path[n - 1] == '/' || path[n - 1] == '\\'))
        n--;
    path[n] = 0;
    return 1;
}

/* the next line as a string, cursor moved behind it; NULL at the end */
static char *tg_line(char **cursor)
{
    char *line = *cursor, *end = line;
    if (!*line)
        return NULL;
    while (*end && *end != '\n' && *end != '\r')
        end++;
    while (*end == '\n' || *end == '\r')
        *end++ = 0;
    *cursor = end;
    return line;
}

/* sixteen hexadecimal digits are the bits of a double: exact, and the same in every locale */
static int tg_bits(const char *text, double *value)
{
    unsigned long long bits = 0;
    for (int i = 0; i < 16; i++) {
        const int digit = hexadecimal(text[i]);
        if (digit < 0)
            return 0;
        bits = 16 * bits + (unsigned long long)digit;
    }
    memcpy(value, &bits, sizeof bits);
    return all_finite(value, 1);
}

/* a count as the header of a list: "real 74" */
static int tg_counts(const char *line, const char *word, long count)
{
    const size_t n = strlen(word);
    return line && strncmp(line, word, n) == 0 && line[n] == ' ' && strtol(line + n + 1, NULL, 10) == count;
}

/* NULL, or what is wrong with the file's text */
static const char *tg_parsed(char *text, const char *guid, Values *v)
{
    const char *line = tg_line(&text);
    if (!line || strcmp(line, "tangere-fmu 1") != 0)
        return "resources/parameters.txt is not a file of this FMU";
    line = tg_line(&text);
    if (!line || strcmp(line, "kind " TG_KIND) != 0)
        return "resources/parameters.txt belongs to another kind of block";
    line = tg_line(&text);
    if (!line || strncmp(line, "guid ", 5) != 0)
        return "resources/parameters.txt holds no GUID";
    if (strcmp(line + 5, guid) != 0)
        return "the GUID is not that of modelDescription.xml";
    if (!tg_counts(tg_line(&text), "real", N_REAL))
        return "resources/parameters.txt does not hold the numbers of this block";
    for (int i = 0; i < N_REAL; i++)
        if (!(line = tg_line(&text)) || !tg_bits(line, &v->real[i]))
            return "resources/parameters.txt holds a number that cannot be read";
    if (!tg_counts(tg_line(&text), "integer", N_INTEGER))
        return "resources/parameters.txt does not hold the integers of this block";
    for (int i = 0; i < N_INTEGER; i++) {
        if (!(line = tg_line(&text)))
            return "resources/parameters.txt ends too early";
        v->integer[i] = (int)strtol(line, NULL, 10);
    }
    if (!tg_counts(tg_line(&text), "boolean", N_BOOLEAN))
        return "resources/parameters.txt does not hold the booleans of this block";
    for (int i = 0; i < N_BOOLEAN; i++) {
        if (!(line = tg_line(&text)))
            return "resources/parameters.txt ends too early";
        v->boolean[i] = line[0] == '1';
    }
    return NULL;
}

/* fills the start values; NULL, or what is wrong */
static const char *tg_load(const fmi2CallbackFunctions *callbacks, const char *location, const char *guid, Values *v)
{
    char path[4096];
    if (!location)
        return "no resource location was given: the start values of the arm are there";
    if (!tg_path(location, path, sizeof path - 20))
        return "the resource location is no usable path";
    strcat(path, "/parameters.txt");
    FILE *file = fopen(path, "rb");
    if (!file)
        return "resources/parameters.txt cannot be opened at the resource location";
    char *text = tg_allocate(callbacks, RESOURCE_MAX + 1);
    const char *problem = "there is no memory left";
    if (text) {
        const size_t n = fread(text, 1, RESOURCE_MAX, file);
        text[n] = 0;
        problem = tg_parsed(text, guid, v);
        tg_release(callbacks, text);
    }
    fclose(file);
    return problem;
}
