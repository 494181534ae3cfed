package settings

import "fmt"

// ConnectCheck names the proof that the browser which ends a connection attempt belongs to the attempt's user.
type ConnectCheck string

// Values of ConnectCheck.
const (
	// ConnectByLogin requires that the user is logged in with that browser.
	ConnectByLogin ConnectCheck = "login"
	// ConnectByState requires only that the browser knows the state, and that nobody else is logged in with it.
	ConnectByState ConnectCheck = "state"
)

// ParseConnectCheck reads the word of a configuration; "" stands for standard.
func ParseConnectCheck(text string, standard ConnectCheck) (ConnectCheck, error) {
	switch check := ConnectCheck(text); check {
	case "":
		return standard, nil
	case ConnectByLogin, ConnectByState:
		return check, nil
	}
	return "", fmt.Errorf("connect_check: %q is neither %s nor %s", text, ConnectByLogin, ConnectByState)
}
