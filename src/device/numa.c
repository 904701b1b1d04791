/* SPDX-License-Identifier: MIT */
/* Finds the CPUs near a device in the files of /sys. */
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>

static bool read_line(char *out, int size, const char *path)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(out, size, f);
    if (f)
        fclose(f);
    return ok;
}

int tnf_numa_node(const char *root, unsigned domain, unsigned bus, unsigned slot)
{
    char path[300], line[32];
    snprintf(path, sizeof path, "%s/bus/pci/devices/%04x:%02x:%02x.0/numa_node", root, domain, bus,
             slot);
    return read_line(line, (int)sizeof line, path) ? (int)strtol(line, NULL, 10) : -1;
}

/* Parses "0-15,32-47". */
bool tnf_numa_cpus(cpu_set_t *out, const char *root, int node)
{
    char path[300], line[4096];
    snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", root, node);
    CPU_ZERO(out);
    if (!read_line(line, (int)sizeof line, path))
        return false;
    for (const char *p = line; *p >= '0' && *p <= '9';) {
        char *end;
        long first = strtol(p, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long i = first; i <= last && i < CPU_SETSIZE; i++)
            CPU_SET((size_t)i, out);
        p = *end == ',' ? end + 1 : end;
    }
    return CPU_COUNT(out) > 0;
}

void tnf_numa_bind(const cpu_set_t *cpus)
{
    cpu_set_t mine, both;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return;
    CPU_AND(&both, &mine, cpus);
    if (CPU_COUNT(&both) > 0)
        sched_setaffinity(0, sizeof both, &both);
}
