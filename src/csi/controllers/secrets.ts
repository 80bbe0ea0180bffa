/**
 * The Secrets that a class names for calls to the driver (L3): templates in its parameters, resolved for one object, and their content.
 * Upstream: external-provisioner, getSecretReference.
 */
import { isDns1123Label, isDns1123Subdomain } from '#api/machinery/names'
import { ownValue } from '#base/bareMap'
import { messageOf } from '#base/messageOf'
import { secrets } from '#client/builtIn'
import type { Client } from '#client/client'
import type { TextMap } from '../server/csiTypes.ts'

export interface SecretKeys {
  /** In messages. */
  readonly name: string
  readonly secretName: string
  readonly secretNamespace: string
  /** Keys of the time before parameters had a prefix. */
  readonly old?: { readonly secretName: string; readonly secretNamespace: string } | undefined
}

export interface SecretReference {
  readonly name: string
  readonly namespace: string
}

/** Values that templates may use, by their token. */
export interface SecretTokens {
  readonly forName: ReadonlyMap<string, string>
  /** Without what a user of the namespace chooses. */
  readonly forNamespace: ReadonlyMap<string, string>
}

/** The Secret by these keys, or else by `otherwise`. @throws Error for templates that are incomplete or resolve to no valid name */
export function secretReferenceOf(parameters: TextMap, keys: SecretKeys, otherwise: SecretKeys, tokens: SecretTokens): SecretReference | undefined {
  const templates = templatesOf(parameters, keys, '') ?? templatesOf(parameters, otherwise, 'default ')
  if (!templates) return undefined
  const namespace = resolve(templates.namespace, tokens.forNamespace)
  const name = resolve(templates.name, tokens.forName)
  if (isDns1123Label(namespace).length > 0) throw new Error(`${resolved(templates.namespace, namespace)} is not a valid namespace name`)
  if (isDns1123Subdomain(name).length > 0) throw new Error(`${resolved(templates.name, name)} is not a valid secret name`)
  return { name, namespace }
}

function templatesOf(parameters: TextMap, keys: SecretKeys, which: string): SecretReference | undefined {
  const fail = (problem: string) => new Error(`failed to get ${which}name and namespace template from params: ${problem}`)
  const given = (...names: readonly (string | undefined)[]) => names.flatMap((name) => (name === undefined ? [] : (ownValue(parameters, name) ?? [])))
  const names = given(keys.old?.secretName, keys.secretName)
  const namespaces = given(keys.old?.secretNamespace, keys.secretNamespace)
  if (names.length > 1 || namespaces.length > 1) throw fail(`${keys.name} secrets specified in parameters with both "csi" and "csi.storage.k8s.io/" keys`)
  if (names.length !== namespaces.length) throw fail(`either name and namespace for ${keys.name} secrets specified, Both must be specified`)
  const [name] = names
  const [namespace] = namespaces
  if (name === undefined || namespace === undefined) return undefined
  if (name === '' || namespace === '') throw fail(`${keys.name} secrets specified in parameters but value of either namespace or name is empty`)
  return { name, namespace }
}

const resolved = (template: string, value: string) =>
  template === value ? JSON.stringify(value) : `${JSON.stringify(template)} resolved to ${JSON.stringify(value)} which`

/** As Go's os.Expand: `${name}`, and `$name` of letters, digits and underscores. */
const token = /\$(?:\{([^}]*)\}|\{|([*#$@!?0-9-])|([A-Za-z_][A-Za-z0-9_]*))/g

function resolve(template: string, values: ReadonlyMap<string, string>): string {
  const missing = new Set<string>()
  const result = template.replace(token, (_, braced?: string, special?: string, plain?: string) => {
    const name = braced ?? special ?? plain
    if (!name) return ''
    const value = values.get(name)
    if (value === undefined) missing.add(name)
    return value ?? ''
  })
  if (missing.size === 0) return result
  const listed = [...missing].sort().map((name) => JSON.stringify(name))
  throw new Error(`error resolving value ${JSON.stringify(template)}: invalid tokens: [${listed.join(' ')}]`)
}

/** The content of a Secret as the driver gets it; empty without a reference. @throws Error when it cannot be read */
export async function credentialsOf(client: Client, reference: SecretReference | undefined, signal: AbortSignal): Promise<TextMap> {
  if (!reference) return {}
  const { name, namespace } = reference
  try {
    const { data } = await client.of(secrets).get(reference, { signal })
    return Object.fromEntries(Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]))
  } catch (error) {
    throw new Error(`error getting secret ${name} in namespace ${namespace}: ${messageOf(error)}`, { cause: error })
  }
}
