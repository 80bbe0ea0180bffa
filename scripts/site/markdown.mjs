/**
 * Markdown to HTML: anchors as GitHub's, links between pages made links between files of the site, code with colors, tables that scroll on a phone.
 * Also takes the text of each section, which the search looks through. HTML in a page is shown as text, except line breaks.
 */
import path from 'node:path'
import MarkdownIt from 'markdown-it'
import { escapeHtml, highlight } from './highlight.mjs'
import { outputOf, relativePath, slugOf } from './pages.mjs'

const { posix } = path

/** Characters of a section that can be searched for. */
const mostText = 4000

const markdown = new MarkdownIt({ html: false, linkify: false })
markdown.inline.ruler.before('autolink', 'br', (state, silent) => {
  if (!state.src.startsWith('<br>', state.pos)) return false
  if (!silent) state.push('hardbreak', 'br', 0)
  state.pos += '<br>'.length
  return true
})
markdown.renderer.rules.fence = (tokens, at) => {
  const { info, content } = tokens[at]
  const [language = ''] = info.trim().split(/\s+/)
  return `<pre class="code" tabindex="0" data-language="${escapeHtml(language)}"><code>${highlight(content, language)}</code></pre>\n`
}
markdown.renderer.rules.code_block = (tokens, at) => `<pre class="code" tabindex="0"><code>${escapeHtml(tokens[at].content)}</code></pre>\n`
markdown.renderer.rules.table_open = () => '<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n'
// A heading without text is none: readers of a screen would announce it.
markdown.renderer.rules.th_open = (tokens, at) => (tokens[at + 1].content === '' ? '<td>' : '<th>')
markdown.renderer.rules.th_close = (tokens, at) => (tokens[at - 1].content === '' ? '</td>\n' : '</th>\n')
markdown.renderer.rules.table_close = () => '</table></div>\n'

/**
 * @param source path of the page in the repository
 * @returns {{ title: string, html: string, headings: { level: number, id: string, text: string }[], links: object[], sections: object[] }}
 */
export function renderPage(source, text) {
  const tokens = markdown.parse(text, {})
  const headings = nameHeadings(tokens)
  const links = rewriteLinks(source, tokens)
  return {
    title: headings.find(({ level }) => level === 1)?.text ?? source,
    html: markdown.renderer.render(tokens, markdown.options, {}),
    headings,
    links,
    sections: sectionsOf(tokens),
  }
}

/** Gives each heading its anchor, and a link to itself. */
function nameHeadings(tokens) {
  const taken = new Map()
  return tokens.flatMap((token, at) => {
    if (token.type !== 'heading_open') return []
    const text = textOf(tokens[at + 1])
    const slug = slugOf(text)
    const before = taken.get(slug) ?? 0
    taken.set(slug, before + 1)
    const id = before === 0 ? slug : `${slug}-${before}`
    token.attrSet('id', id)
    return [{ level: Number(token.tag.slice(1)), id, text }]
  })
}

function textOf(inline) {
  return (inline.children ?? []).map(({ type, content }) => (type === 'softbreak' || type === 'hardbreak' ? ' ' : content)).join('')
}

/** Links and images to files of the repository become those of the site; each is returned with its target, so that it can be checked. */
function rewriteLinks(source, tokens) {
  const links = []
  for (const token of tokens.flatMap(({ children }) => children ?? [])) {
    const attribute = token.type === 'link_open' ? 'href' : token.type === 'image' ? 'src' : undefined
    if (attribute === undefined) continue
    const link = linkOf(source, token.attrGet(attribute) ?? '')
    links.push({ source, isImage: attribute === 'src', ...link })
    if (link.href !== undefined) token.attrSet(attribute, link.href)
    if (attribute === 'src') token.attrSet('loading', 'lazy')
  }
  return links
}

/** `href` is undefined where nothing is to be changed; `target` is undefined for links that leave the site. */
function linkOf(source, written) {
  if (/^(https?|mailto):/.test(written)) return { written }
  const [file = '', anchor = ''] = written.split('#')
  const own = outputOf(source).file
  if (file === '') return { written, target: own, anchor: decodeURIComponent(anchor) }
  const repositoryPath = posix.normalize(posix.join(posix.dirname(source), decodeURIComponent(file)))
  const output = outputOf(repositoryPath.replace(/\/$/, ''))
  if (output === undefined) return { written, target: `${repositoryPath} (not part of the site)`, anchor: '' }
  const to = decodeURIComponent(anchor) || (output.anchor ?? '')
  return { written, target: output.file, anchor: to, href: `${relativePath(own, output.file)}${to === '' ? '' : `#${encodeURIComponent(to)}`}` }
}

/** Headings with the text below each, up to the next one. */
function sectionsOf(tokens) {
  const sections = []
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'heading_open') sections.push({ id: token.attrGet('id'), heading: textOf(tokens[at + 1]), text: '' })
    const section = sections.at(-1)
    if (section === undefined || section.text.length > mostText || tokens[at - 1]?.type === 'heading_open') continue
    if (token.type === 'inline') section.text += ` ${textOf(token)}`
    if (token.type === 'fence') section.text += ` ${token.content}`
  }
  return sections.map((section) => ({ ...section, text: section.text.replace(/\s+/g, ' ').trim().slice(0, mostText) }))
}
