/* SPDX-License-Identifier: MIT */
/* Modules and launches: a part of fake_cuda.c. */
#ifndef TNF_FAKE_MODULES_H
#define TNF_FAKE_MODULES_H

API cu_result cuModuleLoadData(cu_module *out, const void *text)
{
    int result = enter_call(true);
    if (result)
        return leave_call(result);
    if (state.no_modules)
        return leave_call(222);
    if (!strstr(text, ".version"))
        return leave_call(note_violation("a module that is no PTX"));
    *out = malloc(1);
    state.live_modules++;
    return leave_call(0);
}

API cu_result cuModuleUnload(cu_module module)
{
    pthread_mutex_lock(&lock);
    free(module);
    state.live_modules--;
    return leave_call(0);
}

API cu_result cuModuleGetFunction(cu_function *out, cu_module module, const char *name)
{
    int result = enter_call(true);
    (void)module;
    const fake_kernel *k = fake_kernel_named(name);
    if (result == 0 && !k)
        result = note_violation("a kernel that the fake does not have");
    memcpy(out, &k, sizeof k);
    return leave_call(result);
}

API cu_result cuLaunchKernel(cu_function function, unsigned grid_x, unsigned grid_y,
                             unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared, cu_stream stream, void **arguments, void **extra)
{
    int result = enter_call(true);
    const fake_kernel *k;
    memcpy(&k, &function, sizeof k);
    if (result == 0)
        result = check_stream(stream);
    if (result == 0 && (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || shared ||
                        extra || grid_x == 0 || block_x == 0 || block_x > 1024))
        result = note_violation("a launch of a wrong shape");
    struct op op = { .kind = OP_LAUNCH };
    for (unsigned i = 0; result == 0 && i < FAKE_ARGUMENTS; i++)
        memcpy(&op.arguments[i], arguments[i], sizeof op.arguments[i]);
    if (result == 0) {
        op.kernel = k->run;
        push_op(stream, op);
    }
    return leave_call(result);
}

#endif
