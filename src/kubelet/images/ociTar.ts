/**
 * Builds container images without a builder (L3): files in, an OCI image layout as a tar out, which `ctr images import` takes.
 * Deterministic: the same files give the same digest. Upstream has no counterpart; the formats are OCI's image-spec and POSIX ustar.
 */
import { createHash } from 'node:crypto'

export interface TarEntry {
  readonly path: string
  readonly type: 'file' | 'directory' | 'symlink'
  readonly data?: Uint8Array | undefined
  readonly target?: string | undefined
  readonly mode?: number | undefined
  readonly uid?: number | undefined
  readonly gid?: number | undefined
}

export interface ImageConfig {
  /** Full names with tags: 'registry.example/app:1'. */
  readonly names: readonly string[]
  readonly entrypoint?: readonly string[] | undefined
  readonly command?: readonly string[] | undefined
  readonly environment?: readonly string[] | undefined
  readonly user?: string | undefined
  readonly workingDir?: string | undefined
  readonly architecture?: string | undefined
  readonly files: readonly TarEntry[]
}

const blockBytes = 512
const typeFlags = { file: '0', symlink: '2', directory: '5' } as const
const defaultModes = { file: 0o644, symlink: 0o777, directory: 0o755 } as const

function header(entry: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(blockBytes)
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`
  if (Buffer.byteLength(entry.path) > 100) throw new Error(`path too long for a tar: ${entry.path}`)
  block.write(entry.path, 0)
  block.write(octal(entry.mode ?? defaultModes[entry.type], 8), 100)
  block.write(octal(entry.uid ?? 0, 8), 108)
  block.write(octal(entry.gid ?? 0, 8), 116)
  block.write(octal(size, 12), 124)
  block.write(octal(0, 12), 136)
  block.write(' '.repeat(8), 148)
  block.write(typeFlags[entry.type], 156)
  block.write(entry.target ?? '', 157)
  block.write('ustar\0', 257)
  block.write('00', 263)
  let sum = 0
  for (const byte of block) sum += byte
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

/** A POSIX tar of the entries, in their order. */
export function tar(entries: readonly TarEntry[]): Buffer {
  const blocks: Buffer[] = []
  for (const entry of entries) {
    const data = entry.type === 'file' ? (entry.data ?? new Uint8Array()) : new Uint8Array()
    blocks.push(header(entry, data.length), Buffer.from(data))
    const padding = (blockBytes - (data.length % blockBytes)) % blockBytes
    if (padding > 0) blocks.push(Buffer.alloc(padding))
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * blockBytes)])
}

const digest = (data: Uint8Array) => `sha256:${createHash('sha256').update(data).digest('hex')}`

/** An image of one layer as an OCI layout in a tar. */
export function ociTar(config: ImageConfig): Buffer {
  const blobs = new Map<string, Buffer>()
  const add = (data: Buffer, mediaType: string) => {
    blobs.set(digest(data), data)
    return { mediaType, digest: digest(data), size: data.length }
  }
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))
  const layerTar = tar(config.files)
  const layer = add(layerTar, 'application/vnd.oci.image.layer.v1.tar')
  const imageConfig = {
    created: '1970-01-01T00:00:00Z',
    architecture: config.architecture ?? 'amd64',
    os: 'linux',
    config: {
      ...(config.entrypoint ? { Entrypoint: config.entrypoint } : {}),
      ...(config.command ? { Cmd: config.command } : {}),
      Env: config.environment ?? ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      ...(config.user ? { User: config.user } : {}),
      WorkingDir: config.workingDir ?? '/',
    },
    rootfs: { type: 'layers', diff_ids: [digest(layerTar)] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'skiff' }],
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: add(json(imageConfig), 'application/vnd.oci.image.config.v1+json'),
    layers: [layer],
  }
  const described = add(json(manifest), manifest.mediaType)
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: config.names.map((name) => ({ ...described, annotations: { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name } })),
  }
  return tar([
    { path: 'oci-layout', type: 'file', data: json({ imageLayoutVersion: '1.0.0' }) },
    { path: 'index.json', type: 'file', data: json(index) },
    ...[...blobs].map(([name, data]): TarEntry => ({ path: `blobs/${name.replace(':', '/')}`, type: 'file', data })),
  ])
}
