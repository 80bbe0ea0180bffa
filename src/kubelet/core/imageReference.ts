/** Image names (L3, pure): the default tag, and the full repository that credentials are looked up by. Upstream: pkg/util/parsers ParseImageName (v1.36). */

const reference =
  /^(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::\d+)?\/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@[a-z0-9]+:[0-9a-fA-F]{32,})?$/

/** The name with ':latest' when it has neither tag nor digest; undefined when it is no image name. */
export function withDefaultTag(image: string): string | undefined {
  if (!reference.test(image)) return undefined
  const last = image.slice(image.lastIndexOf('/') + 1)
  return image.includes('@') || last.includes(':') ? image : `${image}:latest`
}

/** Without tag and digest, as it is written. */
export function withoutTag(image: string): string {
  const [name = ''] = image.split('@')
  const colon = name.indexOf(':', name.lastIndexOf('/') + 1)
  return colon < 0 ? name : name.slice(0, colon)
}

/** The repository with its registry, as Docker completes short names: 'nginx:1' is 'docker.io/library/nginx'. */
export function repositoryOf(image: string): string {
  const name = withoutTag(image)
  const slash = name.indexOf('/')
  const first = slash < 0 ? '' : name.slice(0, slash)
  const hasRegistry = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase()
  const registry = !hasRegistry || first === 'index.docker.io' ? 'docker.io' : first
  const path = hasRegistry ? name.slice(slash + 1) : name
  return registry === 'docker.io' && !path.includes('/') ? `docker.io/library/${path}` : `${registry}/${path}`
}
