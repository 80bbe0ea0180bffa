/**
 * What needs a script on the pages of the site: the choice of light or dark, the search, and buttons that copy commands. The index of the search is a
 * file next to this one, which is loaded when the search is first used.
 */
const page = document.documentElement
const root = page.dataset.root

const themes = { '': 'Auto', light: 'Light', dark: 'Dark' }

function showTheme(theme) {
  if (theme === '') delete page.dataset.theme
  else page.dataset.theme = theme
}

/** A browser may refuse storage to pages that are opened from a disk. */
function stored(value) {
  try {
    if (value !== undefined) localStorage.setItem('skiff-theme', value)
    const theme = localStorage.getItem('skiff-theme') ?? ''
    return Object.hasOwn(themes, theme) ? theme : ''
  } catch {
    return value ?? ''
  }
}

// Before the first paint.
showTheme(stored())

function startTheme() {
  const button = document.getElementById('theme')
  const names = Object.keys(themes)
  let theme = stored()
  const label = () => {
    button.textContent = themes[theme]
    button.setAttribute('aria-label', `Colors: ${themes[theme]}`)
  }
  button.hidden = false
  label()
  button.addEventListener('click', () => {
    theme = names[(names.indexOf(theme) + 1) % names.length]
    stored(theme)
    showTheme(theme)
    label()
  })
}

const mostResults = 12
let index

/** Each section as [link, page, heading, text], with the lower-case text that is searched. */
function loadIndex() {
  index ??= new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = `${root}assets/search-index.js`
    script.onload = () =>
      resolve(
        globalThis.skiffSearchIndex.map((entry) => ({ entry, page: entry[1].toLowerCase(), heading: entry[2].toLowerCase(), text: entry[3].toLowerCase() })),
      )
    script.onerror = () => reject(new Error('the index of the search could not be loaded'))
    document.head.append(script)
  })
  return index
}

/** Every word must be in the section; one in the heading counts more than one in the text. */
function find(sections, question) {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean)
  const score = ({ page: title, heading, text }) => {
    let sum = 0
    for (const word of words) {
      const one = (heading.includes(word) ? 8 : 0) + (title.includes(word) ? 4 : 0) + Math.min(3, text.split(word).length - 1)
      if (one === 0) return 0
      sum += one
    }
    return sum
  }
  const found = sections.map((section) => ({ section, score: score(section) })).filter((one) => one.score > 0)
  return found
    .sort((a, b) => b.score - a.score)
    .slice(0, mostResults)
    .map(({ section }) => section)
}

/** The text around the first word of the question. */
function around(section, question) {
  const [word = ''] = question.toLowerCase().split(/\s+/).filter(Boolean)
  const at = Math.max(0, section.text.indexOf(word) - 40)
  return section.entry[3].slice(at, at + 120)
}

function startSearch() {
  const input = document.getElementById('search')
  const list = document.getElementById('results')
  let chosen = -1
  const options = () => [...list.children]
  const choose = (at) => {
    chosen = at
    for (const [place, option] of options().entries()) option.setAttribute('aria-selected', String(place === at))
    const option = options()[at]
    option?.scrollIntoView({ block: 'nearest' })
    if (option) input.setAttribute('aria-activedescendant', option.id)
    else input.removeAttribute('aria-activedescendant')
  }
  const show = (isShown) => {
    list.hidden = !isShown
    input.setAttribute('aria-expanded', String(isShown))
    if (!isShown) choose(-1)
  }
  const optionOf = (section, at, question) => {
    const [link, title, heading] = section.entry
    const option = document.createElement('li')
    option.id = `result-${at}`
    option.setAttribute('role', 'option')
    option.setAttribute('aria-selected', 'false')
    option.dataset.link = link
    const text = document.createElement('small')
    text.textContent = around(section, question)
    option.append(title === heading ? title : `${title}: ${heading}`, text)
    option.addEventListener('mousedown', (event) => {
      event.preventDefault()
      open(option)
    })
    return option
  }
  const open = (option) => {
    show(false)
    location.href = root + option.dataset.link
  }
  input.addEventListener('focus', () => void loadIndex().catch(() => {}))
  input.addEventListener('input', async () => {
    const question = input.value.trim()
    if (question.length < 2) return show(false)
    const found = find(await loadIndex(), question)
    if (input.value.trim() !== question) return
    list.replaceChildren(...found.map((section, at) => optionOf(section, at, question)))
    show(found.length > 0)
  })
  input.addEventListener('keydown', (event) => {
    const count = options().length
    if (event.key === 'Escape') show(false)
    if (list.hidden || count === 0) return
    if (event.key === 'ArrowDown') choose((chosen + 1) % count)
    else if (event.key === 'ArrowUp') choose((chosen + count - 1) % count)
    else if (event.key === 'Enter') open(options()[Math.max(0, chosen)])
    else return
    event.preventDefault()
  })
  input.addEventListener('blur', () => show(false))
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target === input) return
    event.preventDefault()
    input.focus()
  })
}

/** Blocks of a console are copied without what the commands print. */
function textToCopy(block) {
  const commands = [...block.querySelectorAll('.command')].map(({ textContent }) => textContent)
  return commands.length > 0 ? commands.join('\n') : block.textContent
}

function startCopying() {
  if (!navigator.clipboard) return
  for (const block of document.querySelectorAll('pre.code')) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'copy'
    button.textContent = 'Copy'
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(textToCopy(block))
      button.textContent = 'Copied'
    })
    const frame = document.createElement('div')
    frame.className = 'block'
    block.replaceWith(frame)
    frame.append(block, button)
  }
}

document.addEventListener('DOMContentLoaded', () => {
  startTheme()
  startSearch()
  startCopying()
})
