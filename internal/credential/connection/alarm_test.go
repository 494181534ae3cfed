package connection

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAlarm checks when a wait ends: at the earliest time that is set, also while it waits, and otherwise after the
// longest time.
func TestAlarm(t *testing.T) {
	const most = 30 * time.Second
	for name, tc := range map[string]struct {
		before, during []time.Duration
		want           time.Duration
	}{
		"nothing is set": {want: most},
		"set":            {before: []time.Duration{5 * time.Second}, want: 5 * time.Second},
		"the earliest":   {before: []time.Duration{7 * time.Second, 5 * time.Second, 6 * time.Second}, want: 5 * time.Second},
		"late":           {before: []time.Duration{time.Minute}, want: most},
		"already over":   {before: []time.Duration{-time.Second}, want: 0},
		"set meanwhile":  {during: []time.Duration{5 * time.Second}, want: 5 * time.Second},
		"earlier meanwhile": {
			before: []time.Duration{20 * time.Second}, during: []time.Duration{10 * time.Second, 25 * time.Second, 5 * time.Second}, want: 5 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, began := newAlarm(), time.Now()
				for _, at := range tc.before {
					a.set(began.Add(at))
				}
				over := make(chan bool)
				go func() { over <- a.wait(nil, most, time.Now) }()
				for _, at := range tc.during {
					synctest.Wait()
					a.set(began.Add(at))
				}
				if went := <-over; !went || time.Since(began) != tc.want {
					t.Errorf("%v after %v", went, time.Since(began))
				}
				again := time.Now()
				if went := a.wait(nil, most, time.Now); !went || time.Since(again) != most {
					t.Errorf("the alarm goes off again after %v", time.Since(again))
				}
			})
		})
	}
}

// TestAlarmEnds checks that a wait ends at once when the broker closes.
func TestAlarmEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, began := newAlarm(), time.Now()
		end := make(chan struct{})
		over := make(chan bool)
		go func() { over <- a.wait(end, time.Hour, time.Now) }()
		synctest.Wait()
		close(end)
		if went := <-over; went || time.Since(began) != 0 {
			t.Errorf("%v after %v", went, time.Since(began))
		}
	})
}
