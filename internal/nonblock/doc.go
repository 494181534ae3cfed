// Package nonblock reads and writes TCP sockets with system calls that Go's scheduler is not told of. The sockets of package net
// never block, so it has nothing to do meanwhile; being told costs it some hundred instructions each time, and when nothing
// else runs it wakes a thread of its own to watch over the call: a quarter of what passing on an event takes.
//
// That thread also takes the processor from a goroutine that computes for more than 10 ms. It sleeps while all processors are
// idle, and a goroutine that the network wakes does not wake it: until the next ordinary system call, garbage collection or
// timer, one that computes for long has its processor to itself. Messages of more than 32 KiB are therefore read and written
// as package net does, and who computes for long over a small one should not rely on being interrupted.
//
// Waiting is still the scheduler's: a socket that has nothing, or no room, is waited for as package net does, with its
// deadlines. Elsewhere than on Linux, and under the race detector, which learns of an order of events from package net's
// calls, connections stay as they are.
package nonblock
