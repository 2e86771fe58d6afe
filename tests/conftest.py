# SPDX-License-Identifier: Apache-2.0
"""Makes Ctrl-C work in whatever the tests start.

A shell without job control lets what it starts in the background ignore SIGINT, and programs hand
that on to their children.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
