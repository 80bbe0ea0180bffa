/**
 * Formats durations in messages (L3, pure), as Go's time.Duration.String does for spans of at least a microsecond, rounded to milliseconds as upstream
 * rounds it. Upstream: kubelet/images/image_manager.go (v1.36).
 */
export function formatElapsed(ms: number): string {
  const rounded = Math.round(ms)
  if (rounded < 1000) return `${rounded}ms`
  const hours = Math.floor(rounded / 3_600_000)
  const minutes = Math.floor(rounded / 60_000) % 60
  const seconds = (rounded % 60_000) / 1000
  return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds}s`
}
