/** Recognizes secrets by their form (L4, pure): tokens, private keys, credentials in kubeconfigs, URLs and headers, and values behind names such as `password`. */
import { replacement } from './knownValues.ts'

const secretWord = 'passw|token|secret|credential|key-data|(?:api|private|access|auth)[-_]?key'
const secretName = new RegExp(secretWord, 'i')
/** Names that end so are references to objects and files, not values. */
const referenceName = /(name|ref|path|file|url|uri|ttl|expiration|expirationseconds|expirationtimestamp|type|namespace|key_?id)$/i

/** Whether an environment variable, or a key of a ConfigMap, is named like something secret. */
export const isSecretName = (name: string): boolean => secretName.test(name) && !referenceName.test(name)

/** What a secret may begin with, or stand behind, in lower case. */
const candidates = `eyj|private key|ls0tls1crudjti|bearer |basic |:\\/\\/|${secretWord}`
/**
 * Behind a word for a secret: the rest of a name and a value, or the value of a variable with that name. Repetitions are bounded here and below, because others
 * choose the texts: the time must not grow with the square of their length.
 */
const behindWord = String.raw`[\w.-]{0,80}\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?[^\s"'{[]|[^"]{0,253}","value"`
const behindScheme = String.raw`[^/\s"]{0,1280}@`
const bootstrapToken = /\.(?<=\b[a-z0-9]{6}\.)[a-z0-9]{16}\b/

/** Whether a text, or the JSON of an object, may have one of the forms below. Most have none, and this is faster than to look for each. */
export function mayHoldSecrets(text: string): boolean {
  const lower = text.toLowerCase()
  const isWord = new RegExp(behindWord, 'y')
  const isUser = new RegExp(behindScheme, 'y')
  const isAt = (test: RegExp, at: number) => {
    test.lastIndex = at
    return test.test(lower)
  }
  const search = new RegExp(candidates, 'g')
  for (let match = search.exec(lower); match; match = search.exec(lower)) {
    const [found] = match
    if (found === '://' ? isAt(isUser, search.lastIndex) : !secretName.test(found) || isAt(isWord, search.lastIndex)) return true
  }
  return bootstrapToken.test(lower)
}

const forms: readonly (readonly [RegExp, string])[] = [
  // JSON Web Tokens, of service accounts and others.
  [/(?<![\w-])eyJ[\w-]{8,4096}\.[\w-]{8,4096}(\.[\w-]{0,4096})?/g, replacement],
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g, replacement],
  // The same in base64, as kubeconfigs have it: the block begins with "-----BEGIN ", and only certificates and requests are public.
  [/LS0tLS1CRUdJTi(?!BDRVJUSUZJQ0FUR)[A-Za-z0-9+/=]{40,}/g, replacement],
  // Tokens of kubeadm.
  [/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, replacement],
  [/\b(bearer|basic)( {1,8})[\w.~+/=-]{6,}/gi, `$1$2${replacement}`],
  [/(:\/\/[^\s/:@"]{0,256}:)[^\s/@"]{1,1024}@/g, `$1${replacement}@`],
  [/\b(client-key-data)(["']?\s{0,8}[:=]\s{0,8}["']?)[^\s"',;}]+/g, `$1$2${replacement}`],
]

/** A name, a separator and a value, as in KEY=VALUE, `key: value`, and JSON, also within a text of JSON. */
const named = /([\w.-]{3,60})(\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?)([^\s"',;&}\]\\]{4,})/g

/** The text without what looks secret; the same text when there is nothing. */
export function withoutSecretForms(text: string): string {
  if (!mayHoldSecrets(text)) return text
  let found = text
  for (const [form, put] of forms) found = found.replace(form, put)
  return found.replace(named, (all, name: string, separator: string, value: string) =>
    isSecretName(name) && !isPlainValue(value) ? `${name}${separator}${replacement}` : all,
  )
}

/** Numbers, durations and words of logs that are no secrets. */
const isPlainValue = (value: string): boolean => /^(true|false|null|nil|none|undefined|\d+(\.\d+)?[a-z]*|\*+)$/i.test(value)
