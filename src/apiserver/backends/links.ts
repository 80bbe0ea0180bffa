/**
 * Links of a proxied backend (L3): those to its own root are led through the proxy's path, in Location headers and in HTML as it streams
 * by. Everything else of a page stays byte for byte.
 * Upstream: apimachinery/pkg/util/proxy/transport.go (rewriteURL, rewriteHTML).
 */
import { posix } from 'node:path'
import { Transform } from 'node:stream'

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
const linkAttributes: Readonly<Record<string, readonly string[]>> = {
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
}
/** Elements whose content is text, whatever it looks like. */
const rawText = /^(script|style|textarea|title|xmp|iframe|noembed|noframes)$/
/** More than this of an unfinished tag or comment is no tag that we would rewrite. */
const maxTagLength = 64 * 1024
/** A name begins where none could have begun before: else each of its letters would be tried as one. */
const attribute = /(?<![^\s"'<>/=])([^\s"'<>/=]+)(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)/g

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
    // One character per byte, so that whatever the page's encoding is comes out as it went in.
    transform: (chunk: Buffer, _encoding, done) => done(null, Buffer.from(write(pending + chunk.toString('latin1'), false), 'latin1')),
    flush: (done) => done(null, Buffer.from(write(pending, true), 'latin1')),
  })
}

interface Rewritten {
  readonly done: string
  /** What may be the beginning of a tag. */
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
  const start = name.length + 1
  return (
    tag.slice(0, start) +
    tag.slice(start).replace(attribute, (whole, key: string, equals: string, value: string) => {
      if (!attributes.includes(key.toLowerCase())) return whole
      const quote = /^["']/.exec(value)?.[0] ?? ''
      const link = quote === '' ? value : value.slice(1, -1)
      return `${key}${equals}${quote}${rewriteLink(link, base)}${quote}`
    })
  )
}
