// Package announce tells people and programs about held calls: by signed webhooks, in chats, and by e-mail. An announcement
// never decides: its link leads to the page on which its reader logs in and decides.
//
// Announcements are rows of the store, made in the transaction that holds a call or decides on it. So none is lost by a
// restart. A node claims a row before it sends it, so that mostly one node sends it, once. When a node ends while it sends,
// another one sends again: every announcement is sent at least once, and has an id by which receivers tell repetitions. The
// announcements of a call come in order. Each receiver has a sender of its own: one that does not answer delays no others.
package announce
