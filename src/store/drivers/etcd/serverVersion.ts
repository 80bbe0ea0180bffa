/** What the versions of etcd's servers can do (L2, pure). Upstream: apiserver/pkg/storage/feature/feature_support_checker.go (v1.36). */

/**
 * Whether a progress notification that a watch asked for is sound: every earlier event has been sent before it. Since 3.4.31, 3.5.13 and 3.6; a version that
 * cannot be read has it not.
 */
export function hasSoundProgress(version: string): boolean {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)
  if (!match) return false
  const [major = 0, minor = 0, patch = 0] = match.slice(1).map(Number)
  if (major !== 3) return major > 3
  if (minor === 4) return patch >= 31
  if (minor === 5) return patch >= 13
  return minor > 5
}
