// Finds sections in which every word occurs. The index is loaded with the first search. `?q=` in the address searches at once.
(() => {
  const up = document.currentScript.dataset.up
  const form = document.getElementById('search')
  const results = document.getElementById('results')
  const article = document.querySelector('article')
  const most = 30

  let loading
  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement('script')
    script.src = up + 'index.js'
    script.onload = () => done(window.searchIndex)
    script.onerror = failed
    document.head.append(script)
  })

  const add = (parent, name, text) => {
    const element = document.createElement(name)
    element.textContent = text
    parent.append(element)
    return element
  }

  const points = (entry, words) => {
    let sum = 0
    for (const word of words) {
      const here = (entry.h.toLowerCase().includes(word) ? 10 : 0) + (entry.p.toLowerCase().includes(word) ? 4 : 0) +
        Math.min(entry.t.toLowerCase().split(word).length - 1, 3)
      if (here === 0) return 0
      sum += here
    }
    return sum
  }

  const excerpt = (parent, text, word) => {
    const at = Math.max(text.toLowerCase().indexOf(word), 0)
    const from = Math.max(at - 80, 0)
    const line = add(parent, 'p', (from > 0 ? '… ' : '') + text.slice(from, at))
    add(line, 'mark', text.slice(at, at + word.length))
    line.append(text.slice(at + word.length, at + 160))
  }

  const search = async query => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean)
    results.hidden = words.length === 0
    article.hidden = !results.hidden
    if (results.hidden) return
    const index = await load()
    if (form.elements.q.value !== query) return // typed on meanwhile
    const found = index.map(entry => ({ entry, sum: points(entry, words) })).filter(f => f.sum > 0).sort((a, b) => b.sum - a.sum)
    results.replaceChildren()
    add(results, 'h1', found.length === 0 ? `Nothing has all of: ${words.join(', ')}` : `${found.length} sections`)
    const list = add(results, 'ol', '')
    for (const { entry } of found.slice(0, most)) {
      const item = add(list, 'li', '')
      const link = add(item, 'a', entry.h === entry.p ? entry.p : `${entry.p}: ${entry.h}`)
      link.href = up + entry.a
      // A heading of the page that is open: show the page again.
      link.addEventListener('click', () => { form.elements.q.value = ''; results.hidden = true; article.hidden = false })
      excerpt(item, entry.t, words[0])
    }
  }

  form.addEventListener('input', () => search(form.elements.q.value))
  form.addEventListener('submit', event => { event.preventDefault(); search(form.elements.q.value) })
  const asked = new URLSearchParams(location.search).get('q')
  if (asked) {
    form.elements.q.value = asked
    search(asked)
  }
})()
