/**
 * /statusz and /flagz (L3): start time, version, further debugging paths, and flags. Text by default; JSON and YAML of config.k8s.io for clients
 * that request the kind.
 * Upstream: apiserver/pkg/server/{statusz,flagz} (v1.36).
 */
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { formatTime } from '#base/time'
import { type Answer, textAnswer } from '../core/answer.ts'
import { clauses, notAcceptable } from '../core/negotiate.ts'
import type { Page } from '../core/page.ts'
import type { ServerRequest } from '../core/request.ts'

export interface ZpagesParts {
  /** The component that serves the pages; default: kube-apiserver. */
  readonly component?: string | undefined
  readonly clock: Clock
  /** Milliseconds since the epoch. */
  readonly startedMs: number
  readonly binaryVersion: string
  readonly emulationVersion: string
  readonly runtimeVersion: string
  /** All paths that `/` lists. */
  paths(): readonly string[]
  /** By upstream's flag names. Must hold no secrets. */
  readonly flags: Readonly<Record<string, string>>
}

const apiServer = 'kube-apiserver'
const accepted = ['application/json', 'application/yaml', 'text/plain']
/** The structured forms; the older one gives a warning. */
const versions: Readonly<Record<string, { readonly deprecated: boolean }>> = bareMap({ v1alpha1: { deprecated: true }, v1beta1: { deprecated: false } })

export function zpages(parts: ZpagesParts): readonly Page[] {
  const page = (prefix: string, content: () => Content): Page => ({
    prefix,
    handle: (request) => (request.path === prefix ? answer(request, parts, content()) : undefined),
  })
  return [
    page('/statusz', () => ({ kind: 'Statusz', content: statusz(parts), text: () => statuszText(parts) })),
    page('/flagz', () => ({ kind: 'Flagz', content: { flags: parts.flags }, text: () => flagzText(parts) })),
  ]
}

interface Content {
  readonly kind: string
  readonly content: object
  text(): string
}

/** @throws NotAcceptable for anything but text and the two structured forms */
function answer(request: ServerRequest, { component = apiServer }: ZpagesParts, { kind, content, text }: Content): Answer {
  const { accept } = request.headers
  const wanted = typeof accept === 'string' && accept.trim() !== '' ? accept : 'text/plain'
  for (const { type, parameters } of clauses(wanted)) {
    if (!parameters.has('as') && (type === 'text/plain' || type === 'text/*' || type === '*/*')) return textAnswer(200, text())
    if (type !== 'application/json' && type !== 'application/yaml') continue
    const version = parameters.get('v') ?? ''
    const known = parameters.get('as') === kind && parameters.get('g') === 'config.k8s.io' ? versions[version] : undefined
    if (!known) continue
    if (known.deprecated) request.warnings.push(`This version of the ${kind.toLowerCase()} endpoint is deprecated. Please use a newer version.`)
    const value = { kind, apiVersion: `config.k8s.io/${version}`, metadata: { name: component }, ...content }
    return { type: 'value', status: 200, value, ...(type === 'application/yaml' ? { encoding: 'yaml' as const } : {}) }
  }
  throw notAcceptable(accepted)
}

function statusz(parts: ZpagesParts) {
  const { startedMs, binaryVersion, emulationVersion, runtimeVersion } = parts
  return {
    startTime: formatTime(startedMs),
    uptimeSeconds: uptimeSeconds(parts),
    goVersion: runtimeVersion,
    binaryVersion,
    emulationVersion,
    paths: debuggingPaths(parts.paths()),
  }
}

function statuszText(parts: ZpagesParts): string {
  const { startTime, goVersion, binaryVersion, emulationVersion, paths } = statusz(parts)
  const seconds = uptimeSeconds(parts)
  const two = (n: number) => String(n).padStart(2, '0')
  const up = `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`
  const lines = [
    `Started: ${unixDate(startTime, parts.startedMs)}`,
    `Up: ${up}`,
    `Go version: ${goVersion}`,
    `Binary version: ${binaryVersion}`,
    `Emulation version: ${emulationVersion}`,
    `Paths: ${paths.join(' ')}`,
  ]
  return `${header(parts, 'statusz')}\n${lines.join('\n')}\n`
}

function flagzText(parts: ZpagesParts): string {
  const { flags } = parts
  const lines = Object.keys(flags)
    .sort()
    .map((name) => `${name}=${flags[name]}\n`)
  return `${header(parts, 'flagz')}${lines.join('')}`
}

/** Tools look for this warning. */
function header({ component = apiServer }: ZpagesParts, page: string): string {
  const warning = 'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.'
  return `\n${component} ${page}\n${warning}\n`
}

function uptimeSeconds({ clock, startedMs }: ZpagesParts): number {
  return Math.max(0, Math.floor((clock.now() - startedMs) / 1000))
}

const notForDebugging: ReadonlySet<string> = new Set(['/apis', '/api', '/openid', '/openapi', '/.well-known'])

/** The first segments of the paths, once each. */
function debuggingPaths(paths: readonly string[]): string[] {
  const roots = new Set(paths.map((path) => `/${path.split('/')[1] ?? ''}`))
  return [...roots].filter((root) => root !== '/' && !notForDebugging.has(root)).sort()
}

const days = ['Thu', 'Fri', 'Sat', 'Sun', 'Mon', 'Tue', 'Wed']
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const msPerDay = 86_400_000

/** As date(1) prints it: `Sat Nov  7 09:05:00 UTC 2026`. The epoch was a Thursday. */
function unixDate(rfc3339: string, epochMs: number): string {
  const [year, month, day] = rfc3339.slice(0, 10).split('-') as [string, string, string]
  const weekday = days[Math.floor(epochMs / msPerDay) % 7]
  return `${weekday} ${months[Number(month) - 1]} ${String(Number(day)).padStart(2, ' ')} ${rfc3339.slice(11, 19)} UTC ${year}`
}
