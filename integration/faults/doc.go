// Package faults breaks what a gateway stands on (the process itself, its PostgreSQL, the connections between them, its disk,
// its log) and holds what it promises against what it does. Its heart are cycles of kill -9 and of stops of PostgreSQL under
// writes: writers keep a journal of what they intend and of what was acknowledged, and it is compared with what the API shows
// after each recovery. `make faults` runs the long form; README.md says which test proves which promise.
package faults
