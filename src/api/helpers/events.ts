/** Questions about events (L1). */

interface TimedEvent {
  readonly metadata: { readonly creationTimestamp?: string | undefined }
  readonly lastTimestamp?: string | null | undefined
  readonly eventTime?: string | null | undefined
  readonly series?: { readonly lastObservedTime?: string | undefined } | null | undefined
}

/** When it happened the last time; empty when the event does not say. */
export function timeOfEvent({ series, lastTimestamp, eventTime, metadata }: TimedEvent): string {
  return series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? ''
}
