/** Colors for the languages of our code blocks: a short list of patterns each, tried in order at every place. Text that none matches stays plain. */

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export function escapeHtml(text) {
  return text.replace(/[&<>"]/g, (character) => entities[character])
}

const string = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y
const words = (text) => new RegExp(`\\b(?:${text.split(' ').join('|')})\\b`, 'y')
const script = [
  ['comment', /\/\/[^\n]*|\/\*[\s\S]*?\*\//y],
  ['string', /`(?:[^`\\]|\\.)*`/y],
  ['string', string],
  [
    'keyword',
    words(
      'async await class const declare export extends finally for from function if implements import interface let new of readonly return throw try type using void while',
    ),
  ],
  ['number', /\b\d[\d_.]*\b/y],
]
const shell = [
  ['comment', /(?<=^|\s)#[^\n]*/y],
  ['string', string],
  ['flag', /(?<=\s)--?[a-zA-Z][\w-]*/y],
]
const patterns = {
  ts: script,
  js: script,
  json: [
    ['keyword', /"(?:[^"\\\n]|\\.)*"(?=\s*:)/y],
    ['string', string],
    ['number', /-?\b\d[\d.]*\b/y],
  ],
  yaml: [
    ['comment', /(?<=^|\s)#[^\n]*/y],
    ['keyword', /(?<=^|[\s{,-])[\w./-]+(?=:(?:\s|$))/y],
    ['string', string],
  ],
  sh: shell,
}

/** @returns HTML */
export function highlight(code, language) {
  if (language === 'console') return consoleLines(code)
  const known = Object.hasOwn(patterns, language) ? patterns[language] : undefined
  return known === undefined ? escapeHtml(code) : colored(code, known)
}

function colored(code, known) {
  let html = ''
  let plain = ''
  for (let at = 0; at < code.length; ) {
    const [name, found] = matchAt(code, at, known)
    if (found === undefined) plain += code[at++]
    else {
      html += `${escapeHtml(plain)}<span class="${name}">${escapeHtml(found)}</span>`
      plain = ''
      at += found.length
    }
  }
  return html + escapeHtml(plain)
}

function matchAt(code, at, known) {
  for (const [name, pattern] of known) {
    pattern.lastIndex = at
    const found = pattern.exec(code)?.[0]
    if (found) return [name, found]
  }
  return []
}

/** Commands after a prompt, and below them what they print. A backslash at the end of a line continues the command in the next one. */
function consoleLines(code) {
  let isCommand = false
  return code
    .split('\n')
    .map((line) => {
      const goesOn = isCommand
      const typed = goesOn ? line : line.startsWith('$ ') ? line.slice(2) : undefined
      isCommand = typed?.endsWith('\\') ?? false
      if (typed === undefined) return escapeHtml(line)
      return `${goesOn ? '' : '<span class="prompt">$ </span>'}<span class="command">${escapeHtml(typed)}</span>`
    })
    .join('\n')
}
