// Package nonblock reads and writes TCP sockets with system calls that Go's scheduler does not notice. The sockets of
// package net never block, so the scheduler has nothing to do meanwhile. To notice a call costs it some hundred
// instructions. On a processor that is mostly idle it also wakes a thread (sysmon) that watches over the call. That is
// an eighth to a fifth of the processor time of an event that passes through (P5 in docs/performance.md).
//
// Package net still waits for a socket that has no bytes or no room, and keeps the deadlines.
//
// The same thread also stops a goroutine that computes for more than 10 ms, so that others run. It sleeps while all
// processors are idle, and a goroutine that the network wakes does not wake it. Such a goroutine can keep its processor
// until the next ordinary system call, timer or garbage collection. So package net reads and writes what is larger than
// 32 KiB.
//
// Connections stay as they are under the race detector and on systems other than Linux. The race detector learns from
// package net's calls that what happens before a write happens before the read at the other end.
package nonblock
