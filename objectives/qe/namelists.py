"""The variables of pw.x's namelists, and what is wrong with those of an input.

pw.x stops at a variable that it does not know, and at a value of another type. Source: INPUT_PW and
Modules/input_parameters.f90 of versions 5 to 7.5; a name that one of them knows is right.
"""

import difflib
from collections.abc import Iterator

from objectives.qe.deck import Deck, list_values
from objectives.qe.output import number

# Text, which needs quotes; arrays; everything else: numbers and logical values.
_TEXT = {
    "control": """
        title calculation verbosity restart_mode outdir prefix wfcdir pseudo_dir disk_io vdw_table_name memory
        point_label_type input_xml_schema_file""",
    "system": """
        occupations smearing input_dft xc_type exxdiv_treatment u_projection_type hubbard_parameters dmft_prefix
        assume_isolated constrained_magnetization sic pol_type vdw_corr esm_bc fcp_thermostat""",
    "electrons": """
        mixing_mode diagonalization startingpot startingwfc electron_dynamics electron_velocities electron_temperature
        orthogonalization rotation_dynamics occupation_dynamics efield_phase""",
    "ions": """
        l_mplathe n_muller np_muller l_exit_muller
        ion_dynamics ion_positions ion_velocities ion_temperature pot_extrapolation wfc_extrapolation""",
    "cell": "cell_parameters cell_dynamics cell_velocities cell_temperature cell_dofree",
}
_ARRAYS = {
    "control": "",
    "system": """
        celldm starting_charge starting_magnetization angle1 angle2 hubbard_u hubbard_j0 hubbard_j hubbard_v
        hubbard_u_back hubbard_alpha hubbard_alpha_back hubbard_beta hubbard_occ hub_pot_fix starting_ns_eigenvalue
        lback l1back backall reserv reserv_back fixed_magnetization b_field london_c6 london_rvdw step_pen a_pen
        sigma_pen alpha_pen""",
    "electrons": "efield_cart diis_nrot diis_rothr",
    "ions": "ion_radius fnosep nhgrp fnhscl tranp amprp",
    "cell": "",
}
_OTHERS = {
    "control": """
        nstep iprint isave tstress tprnfor dt ndr ndw max_seconds ekin_conv_thr etot_conv_thr forc_conv_thr tefield
        dipfield lberry gdir nppstr wf_collect printwfc lelfield nberrycyc refg tefield2 saverho tabps use_wannier
        lkpoint_dir lecrpa lfcp lfcpopt lfcpdyn tqmmm lorbm gate trism twochem use_spinflip symmetry_with_labels""",
    "system": """
        ibrav a b c cosab cosac cosbc nat ntyp nbnd nelec ecutwfc ecutrho nr1 nr2 nr3 nr1s nr2s nr3s nr1b nr2b nr3b
        nosym nosym_evc noinv use_all_frac force_symmorphic degauss nspin ecfixed qcutz q2sigma degauss_cond nbnd_cond
        nelec_cond lda_plus_u lda_plus_u_kind nelup neldw multiplicity orbital_resolved dmft edir emaxpos eopreg eamp
        la2f nqx1 nqx2 nqx3 ecutfock localization_thr scdm ace scdmden scdmgrd nscdm n_proj x_gamma_extrapolation
        yukawa ecutvcut exx_fraction screening_parameter ref_alat noncolin lspinorb starting_spin_angle lambda report
        lforcet sic_epsilon force_pairing sic_alpha sic_gamma sic_energy sci_vb sci_cb tot_charge tot_magnetization
        one_atom_occupations london london_s6 london_rcut dftd3_version dftd3_threebody ts_vdw ts_vdw_isolated
        ts_vdw_econv_thr xdm xdm_a1 xdm_a2 mbd_vdw no_t_rev spline_ps esm_efield esm_w esm_nfit esm_debug
        esm_debug_gpmax esm_a esm_zb lgcscf gcscf_ignore_mun gcscf_mu gcscf_conv_thr gcscf_gk gcscf_gh gcscf_beta
        fcp_mu fcp_mass fcp_tempw fcp_relax fcp_relax_step fcp_relax_crit fcp_mdiis_size fcp_mdiis_step space_group
        uniqueb origin_choice rhombohedral zgate relaxz block block_1 block_2 block_height nextffield""",
    "electrons": """
        electron_maxstep exx_maxstep scf_must_converge conv_thr adaptive_thr conv_thr_init conv_thr_multi mixing_beta
        mixing_ndim mixing_fixed_ns tqr tq_smoothing tbeta_smoothing real_space diago_thr_init diago_cg_maxiter
        diago_david_ndim diago_diis_ndim diago_ppcg_maxiter diago_rmm_ndim diago_rmm_conv diago_gs_nblock
        diago_full_acc efield efield2 epol epol2 emass emass_cutoff ortho_eps ortho_max electron_damping ekincw fnosee
        ampre grease twall diis_size diis_nreset diis_hcut diis_wthr diis_delt diis_maxstep diis_rot diis_fthr
        diis_temp diis_achmix diis_g0chmix diis_g1chmix diis_nchmix diis_ethr diis_chguess n_inner fermi_energy rotmass
        occmass rotation_damping occupation_damping tcg maxiter etresh passop occupation_constraints niter_cg_restart
        niter_cold_restart lambda_cold tcpbo emass_emin emass_cutoff_emin electron_damping_emin dt_emin
        pre_state tgrand""",
    "ions": """
        l_mplathe n_muller np_muller l_exit_muller
        iesr ion_damping tempw nhpcl nhptyp ndega greasp tolp ion_nstepe ion_maxstep refold_pos upscale delta_t nraise
        remove_rigid_rot trust_radius_max trust_radius_min trust_radius_ini w_1 w_2 bfgs_ndim tgdiis_step fire_nmin
        fire_f_inc fire_f_dec fire_alpha_init fire_falpha fire_dtmax num_of_images fe_step fe_nstep sw_nstep""",
    "cell": """
        press wmass temph fnoseh greash cell_factor cell_nstepe cell_damping press_conv_thr treinit_gvecs""",
}
_KNOWN = {group: {name for names in (_TEXT, _ARRAYS, _OTHERS) for name in names[group].split()} for group in _OTHERS}


def wrong_variables(deck: Deck) -> Iterator[str]:
    """Yield a sentence for each variable at which pw.x stops; namelists that are not in the table are not checked."""
    for group, name, values in deck.variables:
        array, given = name.partition("(")[0], list(list_values(values))
        if group not in _KNOWN:
            continue
        if array not in _KNOWN[group]:
            yield f"pw.x has no {array} in &{group.upper()}{_hint(array)}"
        elif array in _TEXT[group].split():
            if values[:1] not in {"'", '"'} or values.strip()[-1:] != values[0]:
                yield f"{name} = {values.strip()}: text needs quotes, {name} = '...'"
        elif array not in _ARRAYS[group].split() and len(given) > 1:
            yield f"{name} = {values.strip()}: it has one value (a decimal point, no comma)"
        elif any(value is not None and not _is_value(value) for value in given):
            yield f"{name} = {values.strip()} is neither a number nor .true. or .false."


def _is_value(text: str) -> bool:
    try:
        number(text)
    except ValueError:
        return text.lower().removeprefix(".")[:1] in {"t", "f"}
    return True


def _hint(name: str) -> str:
    homes = [group for group, names in _KNOWN.items() if name in names]
    if homes:
        return f": it belongs in &{homes[0].upper()}"
    close = difflib.get_close_matches(name, [one for names in _KNOWN.values() for one in names], n=1)
    return f": did you mean {close[0]}?" if close else ""
