package listfilter

import (
	"math"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Task describes a task that a server has created.
type Task struct {
	ID string
	// CreatedAt is the time of creation by the server's clock; zero where the server gives no readable time.
	CreatedAt time.Time
	// TTL is the time for which the server keeps the task; NoTTL where it keeps it without limit or gives no time.
	TTL time.Duration
}

// NoTTL means that there is no limit.
const NoTTL time.Duration = -1

func newTask() Task { return Task{TTL: NoTTL} }

// read reads a member of the object that describes a task, and reports whether it has read the member's value.
// Members are named as in 2025-11-25, or as in the extension of 2026-07-28.
func (t *Task) read(name []byte, s *strictjson.Scanner) bool {
	switch kind := s.Kind(); {
	case string(name) == "taskId" && kind == strictjson.String:
		t.ID = text(s)
	case string(name) == "createdAt" && kind == strictjson.String:
		at, _ := time.Parse(time.RFC3339, text(s)) // zero after an error
		t.CreatedAt = at.UTC()
	case (string(name) == "ttl" || string(name) == "ttlMs") && kind == strictjson.Number:
		t.TTL = milliseconds(string(s.Skip()))
	default:
		return false
	}
	return true
}

// milliseconds reads a duration. A negative one counts as absent.
func milliseconds(number string) time.Duration {
	ms, _ := strconv.ParseFloat(number, 64) // a number out of range becomes the infinity of its sign
	switch {
	case ms < 0:
		return NoTTL
	case ms >= float64(math.MaxInt64/time.Millisecond):
		return math.MaxInt64
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// task reads the object `task` of a result of 2025-11-25 (CreateTaskResult).
func (e *editor) task(object []byte) {
	s := strictjson.NewScanner(object, strictjson.Limits{MaxBytes: len(object) + 1, MaxDepth: maxDepth, MaxMembers: maxMembers})
	defer s.Release()
	var o strictjson.ObjectFrame
	if s.Kind() != strictjson.Object {
		return
	}
	made := newTask()
	for s.OpenObject(&o); s.NextMember(&o); {
		if !made.read(o.Name(), s) {
			s.Skip()
		}
	}
	e.creates(made)
}

func (e *editor) creates(made Task) {
	if e.filter.Created != nil && made.ID != "" {
		e.created = append(e.created, made)
	}
}
