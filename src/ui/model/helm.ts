/** Helm's releases (L4, pure but for the decoder of the platform): Secrets of the type helm.sh/release.v1, one for each revision of a release. */

export const releaseType = 'helm.sh/release.v1'

interface ReleaseSecret {
  readonly metadata: {
    readonly name?: string
    readonly namespace?: string
    readonly creationTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
  }
}

export interface ReleaseRevision {
  readonly secret: string
  readonly namespace: string
  readonly name: string
  readonly revision: number
  readonly status: string
  readonly created: string
}

export interface Release {
  readonly namespace: string
  readonly name: string
  /** The newest first. */
  readonly revisions: readonly ReleaseRevision[]
}

/** By namespace and name. */
export function releasesOf(secrets: readonly ReleaseSecret[]): Release[] {
  const found = new Map<string, ReleaseRevision[]>()
  for (const { metadata } of secrets) {
    const { name: secret = '', namespace = '', creationTimestamp: created = '', labels = {} } = metadata
    const { name, version, status = '' } = labels
    if (name === undefined || version === undefined) continue
    const key = `${namespace}/${name}`
    found.set(key, [...(found.get(key) ?? []), { secret, namespace, name, revision: Number(version), status, created }])
  }
  return [...found.values()]
    .map((revisions) => {
      const [first] = revisions as [ReleaseRevision, ...ReleaseRevision[]]
      return { namespace: first.namespace, name: first.name, revisions: revisions.sort((one, other) => other.revision - one.revision) }
    })
    .sort((one, other) => (`${one.namespace}/${one.name}` < `${other.namespace}/${other.name}` ? -1 : 1))
}

export interface ReleaseContent {
  readonly chart: string
  readonly appVersion: string
  readonly description: string
  readonly notes: string
  readonly manifest: string
  /** What the user set. */
  readonly values: unknown
  readonly deployed: string
}

/** A release may be as large as a Secret, and unpacks to more. */
const mostUnpackedBytes = 20 * 2 ** 20

/** @param data the member `release` of the Secret: base64 of the API around base64 of Helm around gzip @throws Error for what is no release */
export async function contentOf(data: string): Promise<ReleaseContent> {
  const packed = bytesOf(atob(data))
  const text = await unpacked(packed)
  const release = JSON.parse(text) as {
    readonly info?: { readonly description?: string; readonly notes?: string; readonly last_deployed?: string }
    readonly chart?: { readonly metadata?: { readonly name?: string; readonly version?: string; readonly appVersion?: string } }
    readonly config?: unknown
    readonly manifest?: string
  }
  const { info = {}, chart: { metadata = {} } = {}, config, manifest = '' } = release
  return {
    chart: [metadata.name, metadata.version].filter(Boolean).join('-'),
    appVersion: metadata.appVersion ?? '',
    description: info.description ?? '',
    notes: info.notes ?? '',
    manifest,
    values: config ?? {},
    deployed: info.last_deployed ?? '',
  }
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
}

/** Old releases are not packed. */
async function unpacked(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return new TextDecoder().decode(bytes)
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')).getReader()
  const decoder = new TextDecoder()
  let [text, size] = ['', 0]
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return text + decoder.decode()
    size += value.length
    if (size > mostUnpackedBytes) {
      await reader.cancel()
      throw new Error('the release is larger than 20 MiB')
    }
    text += decoder.decode(value, { stream: true })
  }
}
