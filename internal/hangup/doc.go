// Package hangup notices that the other side of a socket has closed it, with one goroutine for all sockets: a read that waits
// for it has one for each, with 4 KiB of stack.
//
// On Linux the kernel tells of it (EPOLLRDHUP), also when bytes that nobody has read come before the end. The goroutine is
// there as long as a socket is watched. Elsewhere there is no such thing.
package hangup
