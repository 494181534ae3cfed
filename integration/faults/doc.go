// Package faults breaks the things that a gateway depends on (the process itself, its PostgreSQL, the connections
// between them, its disk, its log) and compares the gateway's behaviour with its promises. Its main tests are cycles of
// kill -9 and of stops of PostgreSQL under writes: writers keep a journal of their intended and their acknowledged
// writes, and it is compared with the objects in the API after each recovery. `make faults` runs the long form;
// README.md lists the test for each promise.
package faults
