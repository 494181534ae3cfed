package method

// version20260728 removed most notifications of clients: servers send no requests by themselves there, so that there
// is no progress to report, and the roots come with each request.
const version20260728 = "2026-07-28"

// clientNotifications lists the notifications that clients may send before 2026-07-28, and the revision that
// introduced each.
var clientNotifications = map[string]string{
	"notifications/initialized": "", "notifications/cancelled": "", "notifications/progress": "", "notifications/roots/list_changed": "",
	"notifications/tasks/status": "2025-11-25",
}

// FromClient reports whether a client may send a notification in a revision; "" means an unknown revision.
func FromClient(notification, version string) bool {
	if version >= version20260728 {
		return notification == "notifications/cancelled"
	}
	since, known := clientNotifications[notification]
	return known && (version == "" || version >= since)
}

// FreeNotification reports whether a notification costs nothing in rate limits: clients must be able to begin, and to
// cancel.
func FreeNotification(notification string) bool {
	return notification == "notifications/initialized" || notification == "notifications/cancelled"
}
