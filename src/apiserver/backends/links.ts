/**
 * Links of a proxied backend (L3): those to its own root are led through the proxy's path, in Location headers and in HTML as it streams
 * by. Everything else of a page stays byte for byte.
 * Upstream: apimachinery/pkg/util/proxy/transport.go (rewriteURL, rewriteHTML).
 */
import { posix } from 'node:path'
import { Transform } from 'node:stream'
import { bareMap } from '#base/bareMap'

export interface LinkBase {
  /** The proxy's path, without a trailing slash. */
  readonly prefix: string
  /** Hosts that mean the backend: its own host:port, and what the client calls this server. */
  readonly backendHost: string
  readonly requestHost: string
}

export function rewriteLink(link: string, { prefix, backendHost, requestHost }: LinkBase): string {
  const [, scheme = '', slashes = '', path = '', rest = ''] = /^([a-z][a-z0-9+.-]*:)?(\/\/[^/?#]*)?([^?#]*)(.*)$/is.exec(link) ?? []
  const host = slashes.slice(2).replace(/^.*@/, '')
  if ((host !== '' && host !== backendHost && host !== requestHost) || !path.startsWith('/')) return link
  const origin = host !== '' && host === requestHost ? `${scheme}${slashes}` : ''
  return `${origin}${path.startsWith(prefix) ? path : posix.join(prefix, path)}${rest}`
}

/** The attributes of each element that hold a URL. */
const linkAttributes: Readonly<Record<string, readonly string[]>> = bareMap({
  a: ['href'],
  applet: ['codebase'],
  area: ['href'],
  audio: ['src'],
  base: ['href'],
  blockquote: ['cite'],
  body: ['background'],
  button: ['formaction'],
  command: ['icon'],
  del: ['cite'],
  embed: ['src'],
  form: ['action'],
  frame: ['longdesc', 'src'],
  head: ['profile'],
  html: ['manifest'],
  iframe: ['longdesc', 'src'],
  img: ['longdesc', 'src', 'usemap'],
  input: ['src', 'usemap', 'formaction'],
  ins: ['cite'],
  link: ['href'],
  object: ['classid', 'codebase', 'data', 'usemap'],
  q: ['cite'],
  script: ['src'],
  source: ['src'],
  video: ['poster', 'src'],
})
/** Elements whose content is text, whatever it looks like. */
const rawText = /^(script|style|textarea|title|xmp|iframe|noembed|noframes)$/
/** An unfinished tag or comment that is longer is passed on as it is: each piece of the page that arrives has the unfinished part read again. */
const maxTagLength = 16 * 1024
/** From this length on an unfinished tag is read again only when a piece arrives that could end it. */
const patientLength = 1024
// Sticky, and tried one after the other: one expression for all of an attribute takes quadratic time for a long name without a value.
const attributeName = /[^\s"'<>/=]+/y
const equalsSign = /\s*=\s*/y
const attributeValue = /"[^"]*"|'[^']*'|[^\s"'>]+/y

/** Rewrites the links of an HTML page that is written through it. */
export function linkRewriter(base: LinkBase): Transform {
  let pending = ''
  let inside = ''
  const write = (text: string, last: boolean): string => {
    const { done, rest, element } = rewriteTags(text, inside, base)
    inside = element
    pending = last || rest.length > maxTagLength ? '' : rest
    return pending === '' ? done + rest : done
  }
  return new Transform({
    // One character per byte, so that pages of any encoding pass unchanged.
    transform: (chunk: Buffer, _encoding, done) => {
      const arrived = chunk.toString('latin1')
      const text = pending + arrived
      if (pending.length > patientLength && text.length <= maxTagLength && !arrived.includes('>')) {
        pending = text
        done()
      } else done(null, Buffer.from(write(text, false), 'latin1'))
    },
    flush: (done) => done(null, Buffer.from(write(pending, true), 'latin1')),
  })
}

interface Rewritten {
  readonly done: string
  /** Text that may be the beginning of a tag. */
  readonly rest: string
  /** The element of raw text that is open at the end. */
  readonly element: string
}

function rewriteTags(text: string, inside: string, base: LinkBase): Rewritten {
  let done = ''
  let from = 0
  let element = inside
  for (;;) {
    const start = text.indexOf('<', from)
    if (start < 0) return { done: done + text.slice(from), rest: '', element }
    done += text.slice(from, start)
    const end = markupEnd(text, start, element)
    if (end === undefined) return { done, rest: text.slice(start), element }
    const markup = text.slice(start, end)
    const name = /^<([a-z][a-z0-9]*)/i.exec(markup)?.[1]?.toLowerCase()
    if (element !== '') {
      if (markup.length > 1) element = ''
      done += markup
    } else {
      done += name ? rewriteTag(markup, name, base) : markup
      if (name && rawText.test(name) && !markup.endsWith('/>')) element = name
    }
    from = end
  }
}

/** Where the tag or comment at `start` ends; undefined when its end is not here yet. A lone `<` is text. */
function markupEnd(text: string, start: number, element: string): number | undefined {
  if (element !== '') {
    const closing = `</${element}`
    const found = text.slice(start, start + closing.length).toLowerCase()
    if (found === closing) return endOfTag(text, start + closing.length)
    return closing.startsWith(found) && start + found.length === text.length ? undefined : start + 1
  }
  const next = text[start + 1]
  if (next === undefined) return undefined
  if (text.startsWith('<!--', start)) return after(text, '-->', start + 4)
  if (text.length - start < 4 && '<!--'.startsWith(text.slice(start))) return undefined
  return /[a-z/!?]/i.test(next) ? endOfTag(text, start + 1) : start + 1
}

function after(text: string, mark: string, from: number): number | undefined {
  const at = text.indexOf(mark, from)
  return at < 0 ? undefined : at + mark.length
}

/** Past the `>` that is in no quoted value. */
function endOfTag(text: string, from: number): number | undefined {
  let quote = ''
  for (let i = from; i < text.length; i++) {
    const character = text[i]!
    if (quote !== '') {
      if (character === quote) quote = ''
    } else if (character === '>') return i + 1
    else if ((character === '"' || character === "'") && /=\s*$/.test(text.slice(Math.max(from, i - 16), i))) quote = character
  }
  return undefined
}

function rewriteTag(tag: string, name: string, base: LinkBase): string {
  const attributes = linkAttributes[name]
  if (!attributes) return tag
  let done = ''
  let copied = 0
  for (let at = name.length + 1; at < tag.length; ) {
    const key = matchAt(attributeName, tag, at)
    if (key === '') {
      at++
      continue
    }
    at += key.length
    const equals = matchAt(equalsSign, tag, at)
    if (equals === '') continue
    at += equals.length
    const value = matchAt(attributeValue, tag, at)
    if (value !== '' && attributes.includes(key.toLowerCase())) {
      const quote = value[0] === '"' || value[0] === "'" ? value[0] : ''
      const link = quote === '' ? value : value.slice(1, -1)
      done += `${tag.slice(copied, at)}${quote}${rewriteLink(link, base)}${quote}`
      copied = at + value.length
    }
    at += value.length
  }
  return done + tag.slice(copied)
}

/** What the sticky expression matches there; empty: nothing. */
function matchAt(expression: RegExp, text: string, at: number): string {
  expression.lastIndex = at
  return expression.exec(text)?.[0] ?? ''
}
