package mcpmethod

// version20260728 took most notifications of clients away: servers ask nothing by themselves there, so that there is no progress to
// tell, and what roots there are comes with each request.
const version20260728 = "2026-07-28"

// clientNotifications lists what clients may tell servers before 2026-07-28, and the revision that brought each.
var clientNotifications = map[string]string{
	"notifications/initialized": "", "notifications/cancelled": "", "notifications/progress": "", "notifications/roots/list_changed": "",
	"notifications/tasks/status": "2025-11-25",
}

// FromClient reports whether a client may tell a server that in a revision; "" is one that is not known.
func FromClient(notification, version string) bool {
	if version >= version20260728 {
		return notification == "notifications/cancelled"
	}
	since, known := clientNotifications[notification]
	return known && (version == "" || version >= since)
}

// FreeNotification reports whether a notification costs nothing in rate limits: clients must be able to begin, and to take back.
func FreeNotification(notification string) bool {
	return notification == "notifications/initialized" || notification == "notifications/cancelled"
}
