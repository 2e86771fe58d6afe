/* SPDX-License-Identifier: Apache-2.0 */
/* A library without the plugin symbol, as a user may name by mistake. */
__attribute__((visibility("default"))) int not_a_plugin(void);
int not_a_plugin(void) { return 1; }
