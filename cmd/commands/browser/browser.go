// Package browser walks through login pages as a person with a browser does: it opens an address, fills in the form
// it finds, and follows redirects, but never to an address that the caller wants to see instead.
//
// Addresses of such pages carry codes and states. Errors name them without their query.
package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
)

const (
	maxPage      = 1 << 20
	maxRedirects = 10
)

// Browser opens pages, and keeps their cookies.
type Browser struct {
	client *http.Client
	stop   *url.URL
	visits []Visit
}

// Visit describes one request of a walk in a form that may be shown: without the values of parameters.
type Visit struct {
	Method, URL string
	Parameters  []string // names of the query's parameters, sorted
	Status      int
}

// Visits returns every request so far. Pages at the stop address are not among them.
func (b *Browser) Visits() []Visit { return slices.Clone(b.visits) }

// New makes a browser without any cookies. It uses no proxy, because its pages are on this machine. stop, when it is not
// nil, is an address that is not opened: a redirect there ends the walk.
func New(client *http.Client, stop *url.URL) (*Browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("making a jar for cookies: %w", err)
	}
	own := *client
	own.Jar = jar
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Browser{client: &own, stop: stop}, nil
}

// Page is the page to which a walk has led.
type Page struct {
	// URL is the page's address: the stop address, with the query of the redirect, or that of the opened page.
	URL *url.URL
	// Stopped says that URL is the stop address. Nothing else is known of it then.
	Stopped bool
	Status  int
	// Title and Text are the parts that a person would read: the first heading, and the text of the paragraphs.
	Title, Text string
	// Forms holds the page's forms.
	Forms []*Form
}

// FormWith returns the first form that has a field or button of a name; nil when there is none.
func (p *Page) FormWith(name string) *Form {
	for _, f := range p.Forms {
		if _, field := f.Fields[name]; field || len(f.Choices[name]) > 0 {
			return f
		}
	}
	return nil
}

// Open opens an address and follows redirects.
func (b *Browser) Open(ctx context.Context, address string) (*Page, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of the page cannot be read")
	}
	return b.walk(ctx, http.MethodGet, u, "")
}

// Submit sends a form of the page with the given values in addition to those that the form comes with.
func (b *Browser) Submit(ctx context.Context, page *Page, form *Form, values map[string]string) (*Page, error) {
	target, err := page.URL.Parse(form.Action)
	if err != nil {
		return nil, fmt.Errorf("the form of %s leads to an address that cannot be read", Plain(page.URL))
	}
	fields := form.values()
	for name, value := range values {
		fields.Set(name, value)
	}
	return b.walk(ctx, http.MethodPost, target, fields.Encode())
}

func (b *Browser) walk(ctx context.Context, method string, u *url.URL, body string) (*Page, error) {
	for range maxRedirects {
		response, err := b.send(ctx, method, u, body)
		if err != nil {
			return nil, err
		}
		next, err := redirect(response)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return readPage(response)
		}
		if b.stop != nil && next.Scheme == b.stop.Scheme && next.Host == b.stop.Host && next.Path == b.stop.Path {
			return &Page{URL: next, Stopped: true}, nil
		}
		// Browsers turn a POST into a GET on 302 and 303, and these pages send no other redirects.
		method, u, body = http.MethodGet, next, ""
	}
	return nil, fmt.Errorf("%s redirects in a circle", Plain(u))
}

func (b *Browser) send(ctx context.Context, method string, u *url.URL, body string) (*http.Response, error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("a page leads to %s, which is not a web address", Plain(u))
	}
	request, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the address %s cannot be opened", Plain(u))
	}
	request.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := b.client.Do(request)
	if err != nil {
		return nil, WithoutQuery(err)
	}
	b.visits = append(b.visits, Visit{Method: method, URL: Plain(u), Parameters: Names(u), Status: response.StatusCode})
	return response, nil
}

// redirect returns the destination of the answer, nil when it is a page; it closes the body of a redirect.
func redirect(response *http.Response) (*url.URL, error) {
	switch response.StatusCode {
	case http.StatusFound, http.StatusSeeOther:
	default:
		return nil, nil
	}
	_ = response.Body.Close()
	next, err := response.Location()
	if err != nil {
		return nil, fmt.Errorf("%s redirects to an address that cannot be read", Plain(response.Request.URL))
	}
	return next, nil
}

func readPage(response *http.Response) (*Page, error) {
	defer response.Body.Close()
	page := &Page{URL: response.Request.URL, Status: response.StatusCode}
	err := page.read(io.LimitReader(response.Body, maxPage))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", Plain(page.URL), err)
	}
	return page, nil
}

// Plain returns an address without its query and fragment, for people and logs.
func Plain(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Names returns the names of the parameters in an address, sorted: the part of the query that may be shown.
func Names(u *url.URL) []string { return slices.Sorted(maps.Keys(u.Query())) }

// WithoutQuery removes the query from the address in an error of net/http.
func WithoutQuery(err error) error {
	var failure *url.Error
	if !errors.As(err, &failure) {
		return err
	}
	u, parseErr := url.Parse(failure.URL)
	if parseErr != nil {
		return failure.Err
	}
	return &url.Error{Op: failure.Op, URL: Plain(u), Err: failure.Err}
}
