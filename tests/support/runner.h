/* SPDX-License-Identifier: MIT */
/* Put before every source that is one of many in a runner (see runner.c): its main() goes by a name
 * of its own, RUNNER_MAIN, and is declared so that no warning asks for it. */
#ifndef TNF_SUPPORT_RUNNER_H
#define TNF_SUPPORT_RUNNER_H

#define main(arguments)                                                                            \
    RUNNER_MAIN(arguments);                                                                        \
    int RUNNER_MAIN(arguments)

#endif
