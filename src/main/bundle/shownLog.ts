/** The lines of a log that a request asks for (L5, pure): each has a timestamp before it, as the kubelet writes them with `timestamps`. */
const newline = 10

/** `query` as in PodLogOptions: tailLines, sinceTime, timestamps, limitBytes. */
export function shownLog(log: Buffer, query: URLSearchParams): Buffer {
  const lines = linesOf(log)
  const since = query.get('sinceTime')
  const recent = since === null ? lines : lines.filter((line) => timeOf(line) >= Date.parse(since))
  const tail = query.get('tailLines')
  const last = tail === null ? recent : recent.slice(Math.max(0, recent.length - Number(tail)))
  const shown = Buffer.concat(query.get('timestamps') === 'true' ? last : last.map(withoutTime))
  const limit = query.get('limitBytes')
  return limit === null ? shown : shown.subarray(0, Number(limit))
}

function linesOf(log: Buffer): readonly Buffer[] {
  const lines: Buffer[] = []
  for (let start = 0; start < log.length; ) {
    const end = log.indexOf(newline, start)
    const next = end < 0 ? log.length : end + 1
    lines.push(log.subarray(start, next))
    start = next
  }
  return lines
}

const time = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) /

function timeOf(line: Buffer): number {
  return Date.parse(time.exec(line.toString('latin1', 0, 40))?.[0].trim() ?? '')
}

function withoutTime(line: Buffer): Buffer {
  return line.subarray(time.exec(line.toString('latin1', 0, 40))?.[0].length ?? 0)
}
