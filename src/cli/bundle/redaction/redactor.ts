/**
 * Takes secrets out of objects and texts (L4, pure). Secrets are read first: their values are then replaced wherever they occur, in other objects, logs and
 * traces. Names, namespaces, uids and the like stay as they are: they say which object is meant, and other objects refer to them.
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import type { PastObject } from '../../past/objects.ts'
import { KnownValues, replacement } from './knownValues.ts'
import { isSecretName, mayHoldSecrets, withoutSecretForms } from './patterns.ts'

export interface Redactor {
  /** Remembers the values of a Secret. */
  learn(secret: PastObject): void
  /** The object without secrets; the same one when it has none. */
  object<T extends PastObject>(object: T): T
  text(text: string): string
  /** Any JSON value, such as a trace. */
  value(value: unknown): unknown
}

/** For --with-secrets. */
export const keepsAll: Redactor = { learn: () => {}, object: (object) => object, text: (text) => text, value: (value) => value }

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
/** Parts of Secrets that are public, and occur everywhere. */
const publicKeys: ReadonlySet<string> = new Set(['ca.crt', 'tls.crt', 'namespace', 'token-id', 'expiration', 'usage-bootstrap-authentication'])
/** Members that identify an object or a kind, or a part of one, such as a container. */
const identities: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'name', 'namespace', 'uid', 'resourceVersion', 'nodeName', 'creationTimestamp'])
/** Where they do so in custom resources, whose other members may mean anything: at the top, in the metadata and in references. */
const identifying = /^$|^metadata$|[rR]ef(erences?|s)?$/
/** A longer value is no word that a log prints: a release of Helm, an archive. */
const mostLearnedBytes = 64 * 1024
/** A shorter line of a file, or a value in it, is a word that occurs everywhere. */
const leastOfFile = 8

export function createRedactor(): Redactor {
  const known = new KnownValues()
  const text = (given: string) => withoutSecretForms(known.replace(given))
  return {
    learn(secret) {
      for (const [key, value] of Object.entries((secret.data ?? {}) as Readonly<Record<string, unknown>>)) {
        if (typeof value === 'string' && !publicKeys.has(key) && value.length <= mostLearnedBytes) learnValue(known, value)
      }
    },
    object: (object) => (isSecret(object) ? maskedSecret(object) : redacted(object, known, text)),
    text,
    value: (value) => member('', value, { text, isBuiltIn: true }),
  }
}

const isSecret = ({ kind, apiVersion }: PastObject) => kind === 'Secret' && apiVersion === 'v1'

function learnValue(known: KnownValues, encoded: string): void {
  const value = Buffer.from(encoded, 'base64').toString()
  // Certificates are public, and occur in other objects.
  if (value.includes('-----BEGIN CERTIFICATE-----') && !value.includes('PRIVATE KEY')) return
  for (const form of formsOf(value)) known.add(form)
  known.add(encoded)
  if (!value.includes('\n') && !/[:=]/.test(value)) return
  // A file of settings: a program prints one of its values.
  for (const line of value.split('\n')) {
    const [, own = line] = /^[\s"'{]*[\w.-]+["']?\s*[:=]\s*["']?(.*?)["',}]*\s*$/.exec(line) ?? []
    for (const part of [line.trim(), own.trim()]) if (part.length >= leastOfFile && isSecretLine(line)) for (const form of formsOf(part)) known.add(form)
  }
}

/** Lines of keys, and settings whose name says that they are secret. */
function isSecretLine(line: string): boolean {
  const [, name] = /^[\s"'{]*([\w.-]+)["']?\s*[:=]/.exec(line) ?? []
  return name === undefined ? /^[\w+/=-]{16,}$/.test(line.trim()) : isSecretName(name) || /-data$/.test(name)
}

/** The value as it stands in logs, in JSON, in URLs and in base64. */
function formsOf(value: string): readonly string[] {
  const trimmed = value.trim()
  return [value, trimmed, JSON.stringify(trimmed).slice(1, -1), encodedInUrl(trimmed), Buffer.from(trimmed).toString('base64')]
}

function encodedInUrl(value: string): string {
  try {
    return encodeURIComponent(value)
  } catch {
    return value
  }
}

/** The keys stay, and the names of the fields in the managed fields. */
function maskedSecret<T extends PastObject>(secret: T): T {
  const mask = (values: unknown, put: string) =>
    typeof values === 'object' && values !== null ? Object.fromEntries(Object.keys(values).map((key) => [key, put])) : values
  const { annotations, ...metadata } = secret.metadata
  const { [lastApplied]: _, ...others } = (annotations ?? {}) as Readonly<Record<string, string>>
  return {
    ...secret,
    metadata: { ...metadata, ...(annotations === undefined ? {} : { annotations: mask(others, replacement) }) },
    ...(secret.data === undefined ? {} : { data: mask(secret.data, Buffer.from(replacement).toString('base64')) }),
    ...(secret.stringData === undefined ? {} : { stringData: mask(secret.stringData, replacement) }),
  }
}

function redacted<T extends PastObject>(object: T, known: KnownValues, text: (given: string) => string): T {
  const json = textOf(object)
  const isAffected = mayHoldSecrets(json) || (known.size > 0 && known.isIn(Buffer.from(json))) || hasMaskedMember('', object)
  if (!isAffected) return object
  return member('', object, { text, isBuiltIn: isBuiltIn(object) }) as T
}

/** JSON knows no bigint. */
function textOf(object: PastObject): string {
  try {
    return JSON.stringify(object)
  } catch {
    return stringifyExactly(object)
  }
}

/** Tells which members of an object are values of something that is named like a secret: a variable, or an entry of a table. */
function maskOf(key: string, members: Readonly<Record<string, unknown>>): (name: string, own: unknown) => boolean {
  const isVariable = typeof members.name === 'string' && typeof members.value === 'string' && isSecretName(members.name)
  const isTable = key === 'data' || key === 'annotations'
  return (name, own) => typeof own === 'string' && own !== '' && ((isVariable && name === 'value') || (isTable && isSecretName(name)))
}

function hasMaskedMember(key: string, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some((item) => hasMaskedMember(key, item))
  const isMasked = maskOf(key, value as Readonly<Record<string, unknown>>)
  return Object.entries(value).some(([name, own]) => isMasked(name, own) || hasMaskedMember(name, own))
}

/** Groups without a domain, and those of Kubernetes. */
const isBuiltIn = ({ apiVersion }: PastObject) => !apiVersion.includes('.') || /^[^/]*\.k8s\.io\//.test(apiVersion)

interface Rules {
  readonly text: (given: string) => string
  readonly isBuiltIn: boolean
}

function member(key: string, value: unknown, rules: Rules): unknown {
  if (typeof value === 'string') return rules.text(value)
  if (Array.isArray(value)) return value.map((item) => member(key, item, rules))
  if (typeof value !== 'object' || value === null) return value
  const members = value as Readonly<Record<string, unknown>>
  const isMasked = maskOf(key, members)
  const isIdentifying = key !== 'data' && (rules.isBuiltIn || identifying.test(key))
  const shown = (name: string, own: unknown) => {
    if (isMasked(name, own)) return replacement
    return isIdentifying && typeof own === 'string' && identities.has(name) ? own : member(name, own, rules)
  }
  return Object.fromEntries(Object.entries(members).map(([name, own]) => [name, shown(name, own)]))
}
