/** Image names (L3, pure): the default tag, and the registry a pull secret is looked up by. Upstream: parsers.ParseImageName, credentialprovider keyring (v1.36). */
import type { AuthConfig } from '#grpc/criTypes'

const reference =
  /^(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::\d+)?\/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@[a-z0-9]+:[0-9a-fA-F]{32,})?$/

/** The name with ':latest' when it has neither tag nor digest; undefined when it is no image name. */
export function withDefaultTag(image: string): string | undefined {
  if (!reference.test(image)) return undefined
  const last = image.slice(image.lastIndexOf('/') + 1)
  return image.includes('@') || last.includes(':') ? image : `${image}:latest`
}

/** 'docker.io' for short names, as Docker has it. */
function registryOf(image: string): string {
  const slash = image.indexOf('/')
  const first = slash < 0 ? '' : image.slice(0, slash)
  return first.includes('.') || first.includes(':') || first === 'localhost' ? first : 'docker.io'
}

interface DockerConfig {
  readonly auths?: Readonly<Record<string, { readonly username?: string; readonly password?: string; readonly auth?: string; readonly identitytoken?: string }>>
}

/** The credentials for an image out of the secrets' data; the longest matching registry path wins. */
export function credentialsFor(image: string, secrets: readonly Readonly<Record<string, string>>[]): AuthConfig | undefined {
  const registry = registryOf(image)
  const path = registry === 'docker.io' && !image.startsWith('docker.io/') ? `docker.io/${image}` : image
  let best: { length: number; auth: AuthConfig } | undefined
  for (const data of secrets) {
    for (const [server, entry] of Object.entries(authsOf(data))) {
      const key = server
        .replace(/^https?:\/\//, '')
        .replace(/\/(v[12]\/?)?$/, '')
        .replace(/^(index|registry-1)\.docker\.io/, 'docker.io')
      if (key !== registry && !path.startsWith(`${key}/`)) continue
      if (best && best.length >= key.length) continue
      const [username = '', ...password] = entry.auth ? Buffer.from(entry.auth, 'base64').toString().split(':') : []
      const auth = {
        username: entry.username ?? username,
        password: entry.password ?? password.join(':'),
        ...(entry.identitytoken ? { identityToken: entry.identitytoken } : {}),
      }
      best = { length: key.length, auth }
    }
  }
  return best?.auth
}

function authsOf(data: Readonly<Record<string, string>>): NonNullable<DockerConfig['auths']> {
  const decode = (text: string): unknown => {
    try {
      return JSON.parse(Buffer.from(text, 'base64').toString())
    } catch {
      // A secret that is no Docker configuration holds no credentials; the pull says so better than we could.
      return {}
    }
  }
  const modern = data['.dockerconfigjson']
  if (modern !== undefined) return (decode(modern) as DockerConfig).auths ?? {}
  const legacy = data['.dockercfg']
  return legacy === undefined ? {} : (decode(legacy) as NonNullable<DockerConfig['auths']>)
}
