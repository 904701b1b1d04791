/* SPDX-License-Identifier: MIT */
/* Included before every source in a runner (see runner.c): its main() is renamed to RUNNER_MAIN,
 * and declared to avoid a warning. */
#ifndef TNF_SUPPORT_RUNNER_H
#define TNF_SUPPORT_RUNNER_H

#define main(arguments)                                                                            \
    RUNNER_MAIN(arguments);                                                                        \
    int RUNNER_MAIN(arguments)

#endif
