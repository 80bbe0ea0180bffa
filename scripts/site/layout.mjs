/** The HTML around a page: header with search, the navigation, the headings of the page, the pages before and after it. Works without scripts but for the search. */
import { escapeHtml } from './highlight.mjs'
import { relativePath } from './pages.mjs'

/**
 * @param page `{ file, title, html, headings }`
 * @param navigation `[{ title, pages: [{ file, title }] }]`
 */
export function layOut(page, navigation) {
  const to = (file) => escapeHtml(relativePath(page.file, file))
  return `<!doctype html>
<html lang="en" data-root="${to('index.html').replace(/index\.html$/, '')}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(page.title)} · Skiff</title>
<link rel="icon" href="${to('assets/icon.svg')}">
<link rel="stylesheet" href="${to('assets/site.css')}">
<script src="${to('assets/site.js')}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="brand" href="${to('index.html')}">Skiff</a>
<div class="search" role="search">
<input id="search" type="search" role="combobox" aria-expanded="false" aria-controls="results" aria-autocomplete="list" aria-label="Search the pages" placeholder="Search" autocomplete="off">
<ul id="results" role="listbox" aria-label="Pages found" hidden></ul>
</div>
<a class="to-pages" href="#pages">Pages</a>
<button id="theme" type="button" hidden></button>
</header>
<div class="columns">
<main id="content" tabindex="-1">
<article>
${page.html}</article>
${neighbours(page, navigation, to)}
</main>
${contents(page.headings)}
<nav id="pages" class="pages" aria-label="Pages">
${navigation.map((section) => navigationSection(section, page, to)).join('\n')}
</nav>
</div>
</body>
</html>
`
}

function navigationSection({ title, pages }, page, to) {
  const links = pages.map(({ file, title: name }) => {
    const current = file === page.file ? ' aria-current="page"' : ''
    return `<li><a href="${to(file)}"${current}>${escapeHtml(name)}</a></li>`
  })
  return `<h2>${escapeHtml(title)}</h2>\n<ul>\n${links.join('\n')}\n</ul>`
}

function contents(headings) {
  const shown = headings.filter(({ level }) => level === 2)
  if (shown.length < 2) return ''
  const links = shown.map(({ id, text }) => `<li><a href="#${encodeURIComponent(id)}">${escapeHtml(text)}</a></li>`)
  return `<nav class="contents" aria-label="On this page">\n<h2>On this page</h2>\n<ul>\n${links.join('\n')}\n</ul>\n</nav>`
}

function neighbours(page, navigation, to) {
  const all = navigation.flatMap(({ pages }) => pages)
  const at = all.findIndex(({ file }) => file === page.file)
  if (at < 0) return ''
  const [before, after] = [all[at - 1], all[at + 1]]
  const link = (other, relation, text) =>
    other === undefined ? '<span></span>' : `<a rel="${relation}" href="${to(other.file)}">${text(escapeHtml(other.title))}</a>`
  return `<nav class="neighbours" aria-label="Previous and next page">${link(before, 'prev', (title) => `← ${title}`)}${link(after, 'next', (title) => `${title} →`)}</nav>`
}
