// Package declare makes an organization's objects equal to what files say: it reads the files, plans the changes, and
// carries them out in one transaction. Objects are named, never numbered, and everything that the files do not mention
// stays. The rules for members are the API's: its readers read the files too, and each of their problems gets the line and
// column of its member.
package declare
