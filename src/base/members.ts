/** Whether a JSON value holds more members and items than `most`, at any depth (L0). Looks at no more than that many. */
export function hasMoreMembers(value: object, most: number): boolean {
  let members = 0
  const waiting: object[] = [value]
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    for (const key in one) {
      if (++members > most) return true
      const member = (one as Record<string, unknown>)[key]
      if (typeof member === 'object' && member !== null) waiting.push(member)
    }
  }
  return false
}
