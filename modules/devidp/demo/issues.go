package demo

import (
	"errors"
	"slices"
	"sync"
)

const (
	maxAccounts = 1_000
	maxIssues   = 1_000 // of one account
)

// Issue is an issue of one of the demo's accounts.
type Issue struct {
	ID       int    `json:"id"`
	Title    string `json:"title"`
	Team     string `json:"team"`
	Priority int    `json:"priority"`
}

// issues holds the issues of all accounts, in memory. Each account starts with the same three.
type issues struct {
	changed func(account string, c change) // called with mu held, so that events come in the order of the changes

	mu       sync.Mutex
	accounts map[string]*tracker
}

type tracker struct {
	next int
	list []Issue // by id
}

func newIssues(changed func(string, change)) *issues {
	return &issues{changed: changed, accounts: make(map[string]*tracker)}
}

var (
	errTooManyAccounts = errors.New("the demo has too many accounts; restart it to forget them")
	errTooManyIssues   = errors.New("the account has too many issues; delete some")
	errNoSuchIssue     = errors.New("no such issue")
)

// tracker finds an account's issues, with mu held.
func (i *issues) tracker(account string) (*tracker, error) {
	if t, ok := i.accounts[account]; ok {
		return t, nil
	}
	if len(i.accounts) >= maxAccounts {
		return nil, errTooManyAccounts
	}
	t := &tracker{next: 4, list: []Issue{
		{ID: 1, Title: "Connect the gateway", Team: "platform", Priority: 1},
		{ID: 2, Title: "Try an agent", Team: "platform", Priority: 2},
		{ID: 3, Title: "Write the announcement", Team: "marketing", Priority: 3},
	}}
	i.accounts[account] = t
	return t, nil
}

// of returns the account's issues. When team is not empty, it returns those of that team.
func (i *issues) of(account, team string) ([]Issue, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t, err := i.tracker(account)
	if err != nil {
		return nil, err
	}
	found := []Issue{}
	for _, issue := range t.list {
		if team == "" || issue.Team == team {
			found = append(found, issue)
		}
	}
	return found, nil
}

func (i *issues) create(account string, issue Issue) (Issue, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t, err := i.tracker(account)
	if err != nil {
		return Issue{}, err
	}
	if len(t.list) >= maxIssues {
		return Issue{}, errTooManyIssues
	}
	issue.ID = t.next
	t.next++
	t.list = append(t.list, issue)
	i.changed(account, created(issue))
	return issue, nil
}

func (i *issues) remove(account string, id int) (Issue, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t, err := i.tracker(account)
	if err != nil {
		return Issue{}, err
	}
	at := slices.IndexFunc(t.list, func(issue Issue) bool { return issue.ID == id })
	if at < 0 {
		return Issue{}, errNoSuchIssue
	}
	issue := t.list[at]
	t.list = slices.Delete(t.list, at, at+1)
	i.changed(account, deleted(issue))
	return issue, nil
}
