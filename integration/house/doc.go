// Package house tests the repository itself: the direction of imports, the image, the
// scripts. It imports nothing of the project.
package house
