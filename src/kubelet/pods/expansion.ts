/** $(VAR) references in commands, arguments and environment values (L3, pure). Upstream: third_party/forked/golang/expansion (v1.36). */

/**
 * Replaces every $(NAME) that `lookup` knows. $$ stands for one dollar, so $$(NAME) stays a literal $(NAME);
 * references to unknown names and unfinished references stay as they are written.
 */
export function expand(input: string, lookup: (name: string) => string | undefined): string {
  return input.replace(/\$(?:(\$)|\(([^)]*)\))/g, (whole, dollar: string | undefined, name: string | undefined) =>
    dollar ? '$' : (lookup(name ?? '') ?? whole),
  )
}
