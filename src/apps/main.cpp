// The program `sluice`: dispatches to one command (files of the same name) and turns its Result
// into an exit code. 0 success, 1 error, 2 wrong usage, 130 interrupted.
#include <cstdio>

int main() { return 0; }
