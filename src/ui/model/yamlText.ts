/** The text of an object in the editor (L4, pure): without the managed fields, which users do not edit and which are longer than the rest. */

/** Cuts the block `managedFields` out of the metadata. The server keeps the fields of an object that is sent without them. */
export function withoutManagedFields(yaml: string): string {
  const lines = yaml.split('\n')
  const from = lines.findIndex((line) => /^ {2}managedFields:/.test(line))
  const metadata = lines.indexOf('metadata:')
  if (from < 0 || metadata < 0 || from < metadata) return yaml
  let to = from + 1
  // Items of a list may stand at the depth of their key.
  while (to < lines.length && /^( {3,}| {2}-|\s*$)/.test(lines[to] ?? '') && !(to === lines.length - 1 && lines[to] === '')) to++
  return [...lines.slice(0, from), ...lines.slice(to)].join('\n')
}
