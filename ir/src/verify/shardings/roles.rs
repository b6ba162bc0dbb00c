use crate::entity::Class;
use crate::factor::{Axes, Label, Space, Var};
use crate::op::{ActiveRoles, Role, Rule};

/// The split factors that have a role in the op. The last three fields describe axes that prevent the op from
/// running.
pub(in crate::verify) struct Roles {
    pub(in crate::verify) active: ActiveRoles,
    pub(in crate::verify) whole: Option<String>,
    pub(in crate::verify) fragmented: Option<String>,
    pub(in crate::verify) mixed: Option<String>,
}

/// Returns the roles of the split factors; `space` has solved the rule's equations.
pub(in crate::verify) fn roles(
    space: &Space,
    rule: &Rule,
    operands: &[Axes],
    results: &[Axes],
) -> Roles {
    let mut out = Roles {
        active: ActiveRoles::default(),
        whole: None,
        fragmented: None,
        mixed: None,
    };
    for (role, expr) in &rule.roles {
        let Some(var) = Rule::role_var(expr, operands, results) else {
            continue;
        };
        let terms = space.summands(var);
        let split = |t: &Vec<Var>| {
            t.iter()
                .any(|&l| space.label(l).is_some_and(Label::is_split))
        };
        let hits = terms.iter().filter(|t| split(t)).count();
        if hits == 0 {
            continue;
        }
        let shown = || Some(space.describe(var));
        if hits < terms.len() && matches!(role, Role::Reduce | Role::Norm) {
            out.mixed = shown();
        }
        let class = |l: &Var| match space.label(*l) {
            Some(Label::Split(c)) => Some(c),
            _ => None,
        };
        let single = match terms.as_slice() {
            [t] => t.first().and_then(class),
            _ => None,
        };
        match role {
            Role::Whole => out.whole = shown(),
            Role::Owned => {}
            Role::Reduce => out.active.reduce = true,
            Role::Norm => out.active.norm = true,
            Role::Gather => {
                out.active.gather = true;
                if single.is_none() {
                    out.fragmented = shown();
                }
            }
            Role::Expert => match single {
                Some(c) if terms[0].len() == 1 => out.active.expert = Some(c.class),
                _ => {
                    out.active.expert = Some(Class::new(0));
                    out.fragmented = shown();
                }
            },
        }
    }
    out
}
