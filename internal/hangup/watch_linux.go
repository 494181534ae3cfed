package hangup

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Watch has gone called once the other side has closed its end of c, or the connection has failed, until stop. gone is called
// on the goroutine that serves everybody and must not wait; it may still be running when stop returns. Closing c on this side
// tells nobody. stop must be called, before or after that.
func Watch(c syscall.Conn, gone func()) (stop func(), err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("watching a socket: %w", err)
	}
	id, err := sockets.add(gone)
	if err != nil {
		return nil, fmt.Errorf("watching a socket: %w", err)
	}
	if err := sockets.control(raw, syscall.EPOLL_CTL_ADD, id); err != nil {
		sockets.remove(id)
		return nil, fmt.Errorf("watching a socket: %w", err)
	}
	return func() {
		sockets.remove(id)
		_ = sockets.control(raw, syscall.EPOLL_CTL_DEL, id) // the kernel forgets a socket that is closed
	}, nil
}

// sockets are those that are watched.
var sockets watch

// watch is an epoll instance that waits in Go's own.
type watch struct {
	mu      sync.Mutex
	fd      int      // never closed
	epoll   *os.File // over fd; nil: not yet made
	raw     syscall.RawConn
	gone    map[uint64]func() // by id: a descriptor may be another socket's by the time an event is seen
	last    uint64            // id
	running bool              // the goroutine
}

// add begins to listen for events of a new id.
func (w *watch) add(gone func()) (id uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoll == nil {
		if err := w.open(); err != nil {
			return 0, err
		}
	}
	if len(w.gone) == 0 {
		// It was set for the goroutine to end, if there has been one. Where Go cannot wait for the file, this fails.
		if err := w.epoll.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
	w.last++
	w.gone[w.last] = gone
	if !w.running {
		w.running = true
		go w.run()
	}
	return w.last, nil
}

func (w *watch) open() error {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // what os.NewFile tells by whether it can be waited for
		return errors.Join(os.NewSyscallError("fcntl", err), syscall.Close(fd))
	}
	epoll := os.NewFile(uintptr(fd), "epoll")
	raw, err := epoll.SyscallConn()
	if err != nil {
		return errors.Join(err, epoll.Close())
	}
	w.fd, w.epoll, w.raw, w.gone = fd, epoll, raw, make(map[uint64]func())
	return nil
}

// remove forgets an id. The goroutine ends with the last one.
func (w *watch) remove(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.gone, id)
	if len(w.gone) == 0 {
		_ = w.epoll.SetReadDeadline(time.Unix(1, 0))
	}
}

// control adds or removes a socket. An end is told once: it lasts.
func (w *watch) control(socket syscall.RawConn, operation int, id uint64) error {
	event := syscall.EpollEvent{Events: syscall.EPOLLRDHUP | syscall.EPOLLONESHOT, Fd: int32(uint32(id)), Pad: int32(uint32(id >> 32))}
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = os.NewSyscallError("epoll_ctl", syscall.EpollCtl(w.fd, operation, int(fd), &event))
	})
	return errors.Join(err, failed)
}

func (w *watch) run() {
	var events [64]syscall.EpollEvent
	for {
		n := 0
		err := w.raw.Read(func(uintptr) bool {
			n, _ = syscall.EpollWait(w.fd, events[:], 0)
			return n > 0
		})
		if err != nil && w.over() {
			return
		}
		for _, event := range events[:max(n, 0)] {
			w.tell(uint64(uint32(event.Fd)) | uint64(uint32(event.Pad))<<32)
		}
	}
}

// over reports whether nobody is watched any more, which ends the goroutine.
func (w *watch) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = len(w.gone) > 0
	return !w.running
}

func (w *watch) tell(id uint64) {
	w.mu.Lock()
	gone := w.gone[id]
	w.mu.Unlock()
	if gone != nil {
		gone()
	}
}
