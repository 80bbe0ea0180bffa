/**
 * GET /logs (L3): the files below /var/log of the node, and with NodeLogQuery the journal of services. Upstream: kubelet/kubelet.go ServeLogs,
 * kubelet/kubelet_server_journal.go (v1.36).
 */
import { readdir, realpath, stat } from 'node:fs/promises'
import { bareMap } from '#base/bareMap'
import type { KubeletHost } from '../core/host.ts'
import { openRegularWithin } from '../core/safeOpen.ts'
import { HttpError } from './httpError.ts'

const root = '/var/log'
const maxQueryLines = 100_000
/** More is cut off: the answer is kept in memory. */
const maxJournalBytes = 32 * 2 ** 20

export type SystemLogAnswer = { readonly listing: string } | { readonly content: AsyncIterable<Uint8Array> }

/** @param path below /var/log. @throws HttpError 404, 403 */
export async function systemLog(host: KubeletHost, path: readonly string[]): Promise<SystemLogAnswer> {
  if (path.includes('..')) throw new HttpError(400, 'invalid URL path')
  const base = await realpath(host.path(root)).catch(() => missing())
  const file = await realpath(`${base}/${path.join('/')}`).catch(() => missing())
  if (file !== base && !file.startsWith(`${base}/`)) throw new HttpError(403, '403 Forbidden')
  if ((await stat(file)).isDirectory()) return { listing: await listing(file) }
  // Links that came since are not followed; and a pipe would keep a thread waiting for its writer.
  const opened = await openRegularWithin(base, file)
  if (!opened) throw new HttpError(404, '404 page not found')
  return { content: opened.createReadStream() }
}

function missing(): never {
  throw new HttpError(404, '404 page not found')
}

const escapes: Readonly<Record<string, string>> = bareMap({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' })

async function listing(directory: string): Promise<string> {
  const entries = await readdir(directory, { withFileTypes: true })
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort()
  const link = (name: string) => `<a href="${encodeURI(name)}">${name.replace(/[&<>"']/g, (sign) => escapes[sign] ?? sign)}</a>\n`
  return `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${names.map(link).join('')}</pre>\n`
}

/** GET /logs/?query=…: journal entries of services, or lines of a file. @throws HttpError 400 for an invalid query */
export async function queryLogs(host: KubeletHost, query: URLSearchParams): Promise<string | AsyncIterable<Uint8Array>> {
  const names = query.getAll('query')
  const files = names.filter((name) => name.includes('/'))
  if (files.length > 0 && names.length > 1) throw new HttpError(400, 'query: cannot specify a file and more files or services')
  const [file] = files
  if (file !== undefined) {
    const answer = await systemLog(host, file.split('/').filter(Boolean))
    if ('listing' in answer) throw new HttpError(400, `query: ${file} is a directory`)
    return answer.content
  }
  for (const name of names) {
    if (!/^[a-zA-Z0-9@._:-]+$/.test(name) || name.startsWith('-') || name.length > 64)
      throw new HttpError(400, `query: Invalid value: "${name}": input contains unsupported characters`)
  }
  const result = await host.exec.run('journalctl', journalArguments(names, query), { timeoutMs: 30_000, maxOutputBytes: maxJournalBytes })
  if (result.code !== 0) throw new HttpError(500, `journalctl: ${result.stderr.trim() || 'the node has no journal'}`)
  return result.stdout
}

function journalArguments(names: readonly string[], query: URLSearchParams): string[] {
  const [since, until, pattern, boot, tail] = ['sinceTime', 'untilTime', 'pattern', 'boot', 'tailLines'].map((name) => query.get(name))
  for (const [name, value] of [
    ['sinceTime', since],
    ['untilTime', until],
  ] as const) {
    if (value && Number.isNaN(Date.parse(value))) throw new HttpError(400, `${name}: Invalid value: "${value}": must be an RFC 3339 time`)
  }
  if (tail && (!/^\d+$/.test(tail) || Number(tail) > maxQueryLines)) {
    throw new HttpError(400, `tailLines: Invalid value: "${tail}": must be between 0 and ${maxQueryLines}, inclusive`)
  }
  if (boot && !/^-?\d+$/.test(boot)) throw new HttpError(400, `boot: Invalid value: "${boot}": must be a whole number`)
  const local = (time: string) => new Date(time).toISOString().slice(0, 19).replace('T', ' ')
  return [
    '--utc',
    '--no-pager',
    '--output=short-precise',
    ...(since ? [`--since=${local(since)}`] : []),
    ...(until ? [`--until=${local(until)}`] : []),
    ...(tail ? [`--lines=${tail}`] : []),
    ...names.map((name) => `--unit=${name}`),
    ...(pattern ? [`--grep=${pattern}`] : []),
    ...(boot ? ['--boot', boot] : []),
  ]
}
