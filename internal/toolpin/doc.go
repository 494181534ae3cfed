// Package toolpin tells when a tool is not the one any more that was first seen or accepted (attack M13, "rug pull"). It
// reads what of a tool's definition a model sees, hashes it, remembers what is pinned and what was last seen, and shows
// two definitions and their difference to the administrator who decides, with everything visible that hides in them
// (attack M14). What it keeps, writes and shows is bounded, whatever an upstream lists.
package toolpin
