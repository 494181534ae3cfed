package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/policy/replay"
	"github.com/durward-gateway/durward/storage"
)

const (
	// MaxExamples is the number of examples of each new decision that a replay can give.
	MaxExamples = 100
	// shownGroups is the number of groups in a result.
	shownGroups = 200
	// tellEvery is the number of records between two words about the progress.
	tellEvery = 1000
	// replaySteps is the number of steps in which the progress through the time of a replay is told.
	replaySteps = 1000
)

// ReplayInput says which calls are judged: those since a time, until the job was made.
type ReplayInput struct {
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
	Examples int       `json:"examples"` // of each new decision
}

// ReplayResult tells which calls a policy would have decided otherwise.
type ReplayResult struct {
	PolicyID string               `json:"policy_id"`
	Name     string               `json:"policy_name"`
	Status   storage.PolicyStatus `json:"status"`
	Revision int                  `json:"revision"`
	ServerID string               `json:"mcp_server_id"`
	From     time.Time            `json:"from"`
	To       time.Time            `json:"to"`
	Records  int                  `json:"records"` // that were read
	replay.Counts
	Groups    []replay.Group `json:"groups"`
	Ungrouped int            `json:"ungrouped"` // calls of groups that are not listed
	Examples  ReplayExamples `json:"examples"`  // the latest
}

// ReplayExamples are calls by their new decision.
type ReplayExamples struct {
	Deny  []replay.Difference `json:"deny"`
	Allow []replay.Difference `json:"allow"`
	Ask   []replay.Difference `json:"ask"`
}

// Records reads the audit log of an organization, oldest record first.
type Records func(ctx context.Context, organization string, from, to time.Time, each func(*storage.AuditRecord) error) error

// Replay returns the work that judges the calls of the audit log by a policy as it is stored now, whatever its status.
func Replay(store storage.Policies, records Records) Work {
	return func(ctx context.Context, j *storage.Job, input []byte, tell func(done, total int64)) (any, error) {
		var asked ReplayInput
		if err := json.Unmarshal(input, &asked); err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
		policy, err := store.Policy(ctx, j.OrganizationID, j.Subject)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, &Problem{"The policy is not there any more."}
		}
		if err != nil {
			return nil, fmt.Errorf("reading the policy: %w", err)
		}
		present, err := store.ServerPolicies(ctx, policy.OrganizationID, policy.ServerID)
		if err != nil {
			return nil, fmt.Errorf("reading the server's policies: %w", err)
		}
		judge, err := replay.NewJudge(policy.Policy, present)
		if err != nil {
			return nil, &Problem{"The policy cannot be used as it is: " + err.Error()}
		}
		tally, serverID := replay.NewTally(asked.Examples), []byte(policy.ServerID)
		err = records(ctx, j.OrganizationID, asked.Since, asked.Until, func(record *storage.AuditRecord) error {
			var e storage.AuditEntry
			if bytes.Contains(record.Text, serverID) { // the others need not be read
				e, _ = format.EntryOf(record) // tampered with: `durward audit verify` tells
			}
			verdict, difference, missing, err := judge.Judge(ctx, &e)
			if err != nil {
				return err
			}
			tally.Add(verdict, &difference, missing)
			if tally.Records%tellEvery == 0 {
				if !e.At.IsZero() {
					tell(int64(replaySteps*e.At.Sub(asked.Since)/max(1, asked.Until.Sub(asked.Since))), replaySteps)
				}
				return ctx.Err()
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		tell(replaySteps, replaySteps)
		return resultOf(&policy, &asked, tally), nil
	}
}

func resultOf(p *storage.PolicyView, asked *ReplayInput, tally *replay.Tally) ReplayResult {
	r := ReplayResult{
		PolicyID: p.ID, Name: p.Name, Status: p.Status, Revision: p.Revision, ServerID: p.ServerID, From: asked.Since, To: asked.Until,
		Records: tally.Records, Counts: tally.Counts, Groups: tally.Groups(), Ungrouped: tally.Ungrouped,
		Examples: ReplayExamples{Deny: tally.Examples("deny"), Allow: tally.Examples("allow"), Ask: tally.Examples("ask")},
	}
	for _, g := range r.Groups[min(len(r.Groups), shownGroups):] {
		r.Ungrouped += g.Calls
	}
	r.Groups = r.Groups[:min(len(r.Groups), shownGroups)]
	for _, examples := range []*[]replay.Difference{&r.Examples.Deny, &r.Examples.Allow, &r.Examples.Ask} {
		if *examples == nil {
			*examples = []replay.Difference{}
		}
	}
	return r
}
