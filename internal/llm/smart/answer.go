package smart

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var errGarbage = errors.New("the determiner's answer is not one number")

// ParseAnswer reads a determiner's choice among so many slots: the digits of one number, without leading zeros, and
// white space around it. Anything else is an error, with the reason for the decision. A number in a sentence, in
// quotation marks or beside another number may come from the user, not the determiner.
func ParseAnswer(text string, slots int) (slot int, reason Reason, err error) {
	text = strings.Trim(text, " \t\r\n")
	if text == "" || text[0] == '0' && text != "0" || strings.Trim(text, "0123456789") != "" {
		return NoAnswer, ByGarbage, errGarbage
	}
	slot, err = strconv.Atoi(text)
	if err != nil || slot >= slots {
		return NoAnswer, ByRange, fmt.Errorf("the determiner's answer is none of %d slots", slots)
	}
	return slot, ByDeterminer, nil
}
