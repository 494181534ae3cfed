package method

import "testing"

func TestFromClient(t *testing.T) {
	for _, tc := range []struct {
		notification, version string
		want                  bool
	}{
		{"notifications/initialized", "2024-11-05", true}, {"notifications/initialized", "", true}, {"notifications/initialized", "2026-07-28", false},
		{"notifications/cancelled", "2025-06-18", true}, {"notifications/cancelled", "2026-07-28", true}, {"notifications/cancelled", "2027-01-01", true},
		{"notifications/progress", "2025-03-26", true}, {"notifications/progress", "2026-07-28", false},
		{"notifications/roots/list_changed", "2025-11-25", true}, {"notifications/roots/list_changed", "2026-07-28", false},
		{"notifications/tasks/status", "2025-06-18", false}, {"notifications/tasks/status", "2025-11-25", true}, {"notifications/tasks/status", "", true},
		{"notifications/message", "2025-11-25", false}, {"notifications/tools/list_changed", "", false}, {"notifications/x", "2025-11-25", false},
		{"Notifications/Cancelled", "2025-11-25", false}, {"notifications/", "", false}, {"", "", false},
	} {
		if got := FromClient(tc.notification, tc.version); got != tc.want {
			t.Errorf("%s in %q: %v", tc.notification, tc.version, got)
		}
	}
}
